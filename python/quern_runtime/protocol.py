"""Frames and messages of the worker protocol (docs/worker-protocol.md). Bytes only: no socket, no meaning.

The same numbers stand in src/protocol/messages.ts; both sides read the fixtures in protocol/fixtures.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .shapes import Init

PROTOCOL_VERSION = 4

HEADER = struct.Struct("<IBBHI")
HEADER_BYTES = HEADER.size
FLAG_MORE = 1
FRAME_BODY_BYTES_MAX = 256 * 1024
STREAM_WINDOW_BYTES = 4 * FRAME_BODY_BYTES_MAX
# The window of a stream before the first CREDIT: nobody may read it yet.
STREAM_FIRST_BYTES = 16 * 1024
# The cost of a stream piece in its window, in addition to its bytes.
STREAM_PIECE_BYTES = 256
MESSAGE_BYTES_MAX = 512 * 1024 * 1024
# How many bytes of OUTPUT a worker may send before the controller grants more.
OUTPUT_WINDOW_BYTES = 2 * 1024 * 1024

HELLO = 1
INIT = 2
PREDICT = 3
LEASE = 4
CANCEL = 5
DRAIN = 6
JOB_COMPLETE = 7
WINDOW = 8
CREDIT = 9
META = 10
ENQUEUED = 11
OUTPUT_CREDIT = 12
LEASE_PART = 13
REQUEST_ID = 14
WELCOME = 64
READY = 65
INIT_FAILED = 66
RESULT = 67
ERROR = 68
BUSY = 69
START = 70
ACK = 71
RELEASE = 72
STREAM = 73
REFUSED = 74
CHUNK = 75
END = 76
OUTPUT = 77
RECYCLE = 78

# Rules of frames (src/protocol/frame-rules.ts): what callers send, what may be longer than a frame, what has no id.
FROM_CALLER = frozenset(range(HELLO, REQUEST_ID + 1))
MAY_BE_LONG = frozenset((INIT, PREDICT, LEASE, LEASE_PART, RESULT, CHUNK))
WITHOUT_ID = frozenset(
    (HELLO, INIT, DRAIN, ENQUEUED, OUTPUT_CREDIT, WELCOME, READY, INIT_FAILED, REFUSED, OUTPUT, RECYCLE)
)
# May come during a body of the same id: they grant bytes, or end it.
BESIDE_A_BODY = frozenset((CANCEL, WINDOW, CREDIT))
_BODY_BYTES = {CANCEL: 0, WINDOW: 4, CREDIT: 4, OUTPUT_CREDIT: 4}
# One frame of these that has an id is in order, and whole, while no longer body is under way: no closer look is needed.
ORDINARY = frozenset((PREDICT, META, REQUEST_ID, LEASE))


class ProtocolError(ValueError):
    """The other side, or this one, has broken a rule of the protocol, so the connection is unusable."""


def check_frame(message_type: int, flags: int, message_id: int, length: int) -> None:
    """Raises for a frame that no caller sends."""
    if message_type not in FROM_CALLER:
        raise ProtocolError("callers do not send messages of type %d" % message_type)
    if flags and (flags != FLAG_MORE or message_type not in MAY_BE_LONG):
        raise ProtocolError("a message of type %d cannot have the flags %d" % (message_type, flags))
    if (message_id == 0) != (message_type in WITHOUT_ID):
        raise ProtocolError("a message of type %d cannot have the id %d" % (message_type, message_id))
    if _BODY_BYTES.get(message_type, length) != length:
        raise ProtocolError("a message of type %d cannot have %d bytes" % (message_type, length))


# The values of INIT, by name (`Init` in src/protocol/messages.ts). Those of the second table may be missing.
_INIT_NEEDS = {"api_id": str, "project": str, "path": str, "api_config": str, "concurrency": int}
_INIT_MAY_HAVE = {
    "python_path": str,
    "job_config": str,
    "job_spec": dict,
    "threads": int,
    "batching": dict,
    "monitoring": dict,
    "response": str,
    "max_requests": int,
    "has_output": bool,
    "needs_value_per_item": bool,
}
_BATCHING_NEEDS = {"max_batch_size": int, "interval_ms": (int, float)}
_MONITORING_NEEDS = {"model_type": str}


def decode_init(body: bytes) -> Init:
    """The dict of an INIT. Raises for one that no worker can be set up with."""
    init = json.loads(body)
    _check_values("an INIT", init, _INIT_NEEDS)
    _check_values("an INIT", init, {name: kind for name, kind in _INIT_MAY_HAVE.items() if init.get(name) is not None})
    for name, needs in (("batching", _BATCHING_NEEDS), ("monitoring", _MONITORING_NEEDS)):
        if init.get(name) is not None:
            _check_values(name, init[name], needs)
    return cast("Init", init)


def _check_values(what: str, values: Any, needs: Mapping[str, Any]) -> None:
    if not isinstance(values, dict):
        raise ProtocolError("%s is not a JSON object" % what)
    for name, kind in needs.items():
        if not isinstance(values.get(name), kind):
            raise ProtocolError("the %s of %s is missing or has the wrong type" % (name, what))


_U32 = struct.Struct("<I")
_RESULT_HEAD = struct.Struct("<II")
_LEASE_ENTRY = struct.Struct("<II")
_ACK_HEAD = struct.Struct("<IIQ")
# The space in an ACK after its head: for all failures with their heads, and for the sizes of rows.
ACK_PARTS_BYTES_MAX = FRAME_BODY_BYTES_MAX - _ACK_HEAD.size


def frame(message_type: int, message_id: int, body: bytes, flags: int = 0) -> bytes:
    """One frame as bytes; the body must fit into one."""
    return HEADER.pack(len(body), message_type, flags, 0, message_id) + body


def frame_head(message_type: int, message_id: int, length: int) -> bytes:
    """The bytes before a body of this length."""
    return HEADER.pack(length, message_type, 0, 0, message_id)


def json_frame(message_type: int, message_id: int, value: object) -> bytes:
    return frame(message_type, message_id, json.dumps(value).encode())


# Space for the longest frame after the rest of the previous one.
READ_BYTES = 2 * (HEADER_BYTES + FRAME_BODY_BYTES_MAX)


class FrameReader:
    """Cuts a byte stream into frames, in memory of its own.

    `space` is where the next bytes are read to; `filled` takes how many came, and returns the frames.
    """

    def __init__(self) -> None:
        self._buffer = bytearray(READ_BYTES)
        self._view = memoryview(self._buffer)
        self._start = 0
        self._end = 0

    def space(self) -> memoryview:
        """Where the next bytes go; never empty."""
        start, end = self._start, self._end
        if start == end:
            self._start = self._end = 0
        elif start and READ_BYTES - end < READ_BYTES // 2:
            self._view[: end - start] = bytes(self._view[start:end])
            self._start, self._end = 0, end - start
        return self._view[self._end :]

    def filled(self, count: int) -> list[tuple[int, int, int, bytes]]:
        """The frames that are complete now, as [(type, flags, id, body)]. Raises for bytes that are not a frame."""
        frames = []
        start = self._start
        end = self._end = self._end + count
        while end - start >= HEADER_BYTES:
            length, message_type, flags, reserved, message_id = HEADER.unpack_from(self._buffer, start)
            if length > FRAME_BODY_BYTES_MAX:
                raise ProtocolError("frame of %d bytes is over the limit of %d" % (length, FRAME_BODY_BYTES_MAX))
            if reserved:
                raise ProtocolError("the reserved field of a frame is %d, not 0" % reserved)
            body = start + HEADER_BYTES
            if body + length > end:
                break
            start = body + length
            frames.append((message_type, flags, message_id, bytes(self._view[body:start])))
        self._start = start
        return frames


def encode_result(predict_us: int, head: bytes, body: bytes) -> bytes:
    """RESULT: microseconds spent in predict(), a head as JSON bytes (empty: status 200, JSON), then the body."""
    return _RESULT_HEAD.pack(min(predict_us, 0xFFFFFFFF), len(head)) + head + body


def decode_lease(body: bytes) -> list[tuple[int, bytes]]:
    """LEASE: [(batch index, payload bytes)], in the order of their deliveries."""
    entries = []
    at = 0
    while at < len(body):
        if at + _LEASE_ENTRY.size > len(body):
            raise ProtocolError("a LEASE ends inside of an entry's head")
        batch_index, length = _LEASE_ENTRY.unpack_from(body, at)
        at += _LEASE_ENTRY.size
        if at + length > len(body):
            raise ProtocolError("a LEASE ends inside of a batch")
        entries.append((batch_index, body[at : at + length]))
        at += length
    return entries


def decode_lease_part(body: bytes) -> tuple[int, int, bytes]:
    """LEASE_PART: (batch index, first item, payload bytes)."""
    if len(body) < _LEASE_ENTRY.size:
        raise ProtocolError("a LEASE_PART ends inside of its head")
    batch_index, first_item = _LEASE_ENTRY.unpack_from(body, 0)
    return batch_index, first_item, body[_LEASE_ENTRY.size :]


def encode_ack(succeeded: int, success_us: int, failures: list[tuple[int, bytes]], sizes: Sequence[bytes]) -> bytes:
    """ACK: counts; for each success of a job with output, `sizes`: its rows and their bytes as two u32; and, for each
    failure, (delivery, fault as JSON bytes).

    The frame's id is the last delivery settled.
    """
    parts = [_ACK_HEAD.pack(succeeded, len(failures), success_us), *sizes]
    for delivery, fault in failures:
        parts.append(_LEASE_ENTRY.pack(delivery, len(fault)))
        parts.append(fault)
    return b"".join(parts)


def failure_bytes(fault: bytes) -> int:
    """The size of this fault (JSON bytes) inside an ACK."""
    return _LEASE_ENTRY.size + len(fault)


def encode_u32(value: int) -> bytes:
    """The body of RELEASE (the last delivery given back), and of WINDOW, CREDIT and OUTPUT_CREDIT (bytes granted)."""
    return _U32.pack(value)


def decode_u32(body: bytes) -> int:
    """The same, read."""
    return cast("int", _U32.unpack_from(body, 0)[0])
