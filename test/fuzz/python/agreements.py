"""Checks here what the TypeScript side claims of an input. Each function raises if the two do not agree."""

import base64
import hashlib
import json

from quern_runtime import protocol
from quern_runtime.http_payload import parse_batch


def frames(data):
    """The same bytes give the same frames here, or the same error."""
    claim = json.loads(data)
    stream = base64.b64decode(claim["bytes"])
    found, is_broken = _read(stream, claim["steps"] or [1])
    assert is_broken == claim["isBroken"], "broken here: %s" % is_broken
    # Frames from the read that broke the stream are not returned here.
    there = claim["frames"][: len(found)] if is_broken else claim["frames"]
    assert found == there, "frames here: %.300s; there: %.300s" % (found, there)


def _read(stream, steps):
    reader = protocol.FrameReader()
    found = []
    at = turn = 0
    try:
        while at < len(stream):
            space = reader.space()
            piece = stream[at : at + min(len(space), steps[turn % len(steps)])]
            space[: len(piece)] = piece
            at += len(piece)
            turn += 1
            for message_type, flags, message_id, body in reader.filled(len(piece)):
                found.append([message_type, flags, message_id, len(body), hashlib.sha1(body).hexdigest()])
    except protocol.ProtocolError:
        return found, True
    return found, False


def submission(data):
    """An accepted submission can be given to a worker."""
    claim = json.loads(data)
    items = parse_batch(("[%s]" % ",".join(claim["items"])).encode())
    assert len(items) == len(claim["items"]), "%d items here" % len(items)
    assert isinstance(json.loads(claim["config"]), dict), "the configuration is no object here"


def json_lines(data):
    """Each line that was taken is an object here."""
    for line in json.loads(data)["lines"]:
        (item,) = parse_batch(("[%s]" % line).encode())
        assert isinstance(item, dict), "a line is %s here" % type(item)
