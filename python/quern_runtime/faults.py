"""Exceptions as faults: the data for the response, and for the log.

A fault is short whatever was raised, and always JSON that the other side can read. Nothing here raises: an exception
whose `__str__`, `detail` or class misbehaves loses only the text that could not be read, never the fault.
"""

from __future__ import annotations

import json
import traceback
from typing import TYPE_CHECKING

from .capability import hide

if TYPE_CHECKING:
    from .shapes import Fault, HttpFields

# Bytes of the JSON text as it is sent. The same numbers are in src/contracts/limits/frames.ts; tests of both sides
# compare.
FAULT_TYPE_BYTES_MAX = 256
FAULT_MESSAGE_BYTES_MAX = 8 * 1024
FAULT_TRACEBACK_BYTES_MAX = 24 * 1024
FAULT_DETAIL_BYTES_MAX = 64 * 1024
FAULT_DETAIL_DEPTH_MAX = 100


class PayloadError(Exception):
    """The request's body is not what its content type says. The caller gets 400 with the message."""


class JsonError(PayloadError):
    """The body should be JSON and is not; the gateway recognizes it by this name."""


def fault(stage: str, error: BaseException) -> Fault:
    """An exception as the body of ERROR, INIT_FAILED or a failed delivery. Frames of the runtime itself are left out.

    `stage` is where it was raised: `load`, `signature`, `init`, `payload`, `predict`, `serialize`, `response`,
    `post_predict` or `on_job_complete`.
    """
    described: Fault = {
        "stage": stage,
        "type": cut(_class_name(error), FAULT_TYPE_BYTES_MAX),
        "message": cut(hide(_message(error)), FAULT_MESSAGE_BYTES_MAX),
        "traceback": cut_middle(hide(_traceback(error)), FAULT_TRACEBACK_BYTES_MAX),
        **_http_fields(error),
    }
    return described


def encode(described: Fault) -> bytes:
    """As JSON."""
    return json.dumps(described, allow_nan=False).encode()


def cut(text: str, most: int) -> str:
    """The text, if its JSON has at most `most` bytes; else its beginning, with a note that it was cut."""
    if _fits(text, most):
        return text
    note = "… (cut: %d characters in all)" % len(text)
    return _beginning(text, most - _json_bytes(note)) + note


def cut_middle(text: str, most: int) -> str:
    """The same with beginning and end: a traceback's last lines say what was raised."""
    if _fits(text, most):
        return text
    note = "\n… (cut: %d characters in all) …\n" % len(text)
    half = (most - _json_bytes(note)) // 2
    return _beginning(text, half) + note + _beginning(text[-half:][::-1], half)[::-1]


def _json_bytes(text: str) -> int:
    return len(json.dumps(text)) - 2


def _fits(text: str, most: int) -> bool:
    """No character has less than one byte, so that a text of gigabytes is not encoded to see that it is too long."""
    return len(text) <= most and _json_bytes(text) <= most


def _beginning(text: str, most: int) -> str:
    """As many characters as have at most `most` bytes of JSON."""
    text = text[:most]
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if _json_bytes(text[:middle]) <= most:
            low = middle
        else:
            high = middle - 1
    return text[:low]


def _class_name(error: object) -> str:
    try:
        return _plain_text(type.__dict__["__name__"].__get__(type(error)))
    except BaseException:
        return "Exception"


def _message(error: object) -> str:
    try:
        return _plain_text(str(error))
    except BaseException:
        return "(its message could not be read)"


def _traceback(error: BaseException) -> str:
    try:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if "quern_runtime" not in frame.filename] or frames
        lines = ["Traceback (most recent call last):\n", *traceback.format_list(own)]
        return _plain_text("".join(lines + traceback.format_exception_only(type(error), error)))
    except BaseException:
        return "(its traceback could not be read)\n%s\n" % _class_name(error)


def _http_fields(error: BaseException) -> HttpFields:
    """`status_code` and `detail` of an exception that looks like an HTTPException."""
    try:
        status_code = getattr(error, "status_code", None)
        if not isinstance(status_code, int) or isinstance(status_code, bool) or not 400 <= status_code <= 599:
            return {}
        if not hasattr(error, "detail"):
            return {}
        return {"status_code": int(status_code), "detail": _detail(error.detail)}
    except BaseException:
        return {}


def _detail(value: object) -> object:
    """As plain JSON. A value that is not JSON becomes its text; one that is too long or too deep becomes the beginning
    of its JSON.
    """
    try:
        text = hide(json.dumps(value, allow_nan=False))
        if isinstance(value, str):
            return cut(hide(_plain_text(value)), FAULT_DETAIL_BYTES_MAX)
        if len(text) > FAULT_DETAIL_BYTES_MAX:
            return cut(text, FAULT_DETAIL_BYTES_MAX)
        plain = json.loads(text)
        return plain if _depth(plain) <= FAULT_DETAIL_DEPTH_MAX else cut(text, FAULT_DETAIL_BYTES_MAX)
    except BaseException:
        return cut(hide(_message(value)), FAULT_DETAIL_BYTES_MAX)


def _depth(value: object) -> int:
    """How deep maps and lists lie inside each other."""
    depth, level = 0, [value]
    while level:
        depth += 1
        inner = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, (dict, list))]
        level = [value for values in inner for value in values]
    return depth


def _plain_text(text: str) -> str:
    """A plain str, from a value that may be a subclass with its own methods."""
    return str.__str__(text)
