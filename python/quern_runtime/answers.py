"""What predict() returns, as an answer: a head that is empty for the common case, and a body.

The rules: docs/contract/predictor.md#answers
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, final

from .answer_heads import checked_headers, checked_status
from .late import late

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from .shapes import Bytes, Head, HeaderPairs, Pieces

PLAIN = frozenset((dict, list, str, int, float, bool, tuple, type(None)))
NO_HEAD = b""
_OCTETS = json.dumps({"headers": [["content-type", "application/octet-stream"]]}).encode()
_TEXT = json.dumps({"headers": [["content-type", "text/plain; charset=utf-8"]]}).encode()


@final
class Streamed:
    """An answer in pieces: `head` as a dict for STREAM, `pieces` an iterator or async iterator, `encode` for each."""

    def __init__(self, head: Head, pieces: Pieces, encode: Callable[[Any], bytes]) -> None:
        self.head = head
        self.pieces = pieces
        self.encode = encode


def encode_answer(value: Any) -> tuple[bytes, bytes] | Streamed:
    """What predict() returned, as (head, body) or a Streamed. Head and body are bytes.

    - bytes, bytearray and memoryview are `application/octet-stream`.
    - An iterator or async iterator is a stream of JSON values.
    - An object with `status_code`, `headers` and a body (`body`, `body_iterator` or `get_data()`) is sent as it is.
    - Everything else is JSON. numpy arrays and scalars are their lists and numbers.

    Raises TypeError or ValueError, which name what cannot be written as JSON, and HeadError for a status or a header
    that HTTP does not allow.
    """
    if type(value) in PLAIN:
        return NO_HEAD, encode_json(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _OCTETS, plain_bytes(value)
    if is_streamed(value):
        return Streamed({"format": "json"}, value, encode_json)
    if _is_response(value):
        return _encode_response(value)
    return NO_HEAD, encode_json(value)


def encode_text_answer(value: Any) -> tuple[bytes, bytes] | Streamed:
    """The same with `predictor.response: text`: a str is sent as `text/plain`, and so is each str of a generator.

    Raises ValueError for a str that UTF-8 cannot hold. A piece of a generator that is not a str raises TypeError when
    its turn comes.
    """
    if isinstance(value, str):
        return _TEXT, _encode_text(value)
    if is_streamed(value):
        return Streamed({"format": "text"}, value, _text_piece)
    return encode_answer(value)


def _encode_text(text: str) -> bytes:
    try:
        return str.encode(text)
    except UnicodeEncodeError as error:
        raise ValueError("half of a surrogate pair, at character %d, cannot be sent as text" % error.start) from None


def _text_piece(piece: object) -> bytes:
    if isinstance(piece, str):
        return _encode_text(piece)
    raise TypeError(
        "with predictor.response: text a generator may give str only, not %s; yield str, or remove predictor.response "
        "to send each piece as JSON" % type(piece).__name__
    )


def is_streamed(value: object) -> bool:
    """Whether it is an iterator or an async iterator."""
    return hasattr(value, "__next__") or hasattr(value, "__anext__")


def from_numpy(value: Any) -> Any:
    """A numpy array as its list, a scalar as its number. Raises TypeError for everything else."""
    convert = getattr(value, "tolist", None)
    if convert is not None and type(value).__module__.split(".")[0] == "numpy":
        return convert()
    raise TypeError("a value of type %s is not JSON serializable" % type(value).__name__)


_STYLE: dict[str, Any] = {"allow_nan": False, "separators": (",", ":"), "default": from_numpy}
_encode = json.JSONEncoder(ensure_ascii=False, **_STYLE).encode
_encode_escaped = json.JSONEncoder(**_STYLE).encode


def encode_json(value: object) -> bytes:
    """The value as JSON in UTF-8. Raises TypeError or ValueError for what JSON cannot hold, such as NaN."""
    try:
        return _encode(value).encode()
    except UnicodeEncodeError:
        # Half a surrogate pair, as a caller may send it in JSON: UTF-8 cannot encode it, JSON escapes can.
        return _encode_escaped(value).encode()


def plain_bytes(value: Bytes) -> bytes:
    """Plain bytes, from a value that may be a subclass with its own methods."""
    return memoryview(value).tobytes()


def _is_response(value: Any) -> bool:
    """An object with `status_code`, `headers` and a body: it is sent unchanged. Responses of Starlette and Flask are
    such objects.
    """
    return (
        hasattr(value, "status_code")
        and hasattr(value, "headers")
        and any(hasattr(value, name) for name in ("body", "body_iterator", "get_data"))
        and (isinstance(value.status_code, int) or not isinstance(value, (dict, list, tuple, str, int, float)))
        and not isinstance(value, type)
    )


def _encode_response(value: Any) -> tuple[bytes, bytes] | Streamed:
    status, headers = checked_status(value.status_code), checked_headers(_headers_of(value))
    body = _body_of(value)
    if is_streamed(body) or hasattr(body, "__aiter__"):
        head = {"status": status, "headers": headers, "format": "raw"}
        return Streamed(head, body if is_streamed(body) else body.__aiter__(), _raw_piece)
    if isinstance(body, str):
        body, default = str.encode(body), "text/plain; charset=utf-8"
    elif isinstance(body, (bytes, bytearray, memoryview)):
        body, default = plain_bytes(body), "application/octet-stream"
    elif body is None:
        body, default = b"", None
    else:
        body, default = encode_json(body), "application/json"
    if default is not None and not any(name.lower() == "content-type" for name, _ in headers):
        headers.append(["content-type", default])
    return json.dumps({"status": status, "headers": headers}).encode(), body


def _body_of(value: Any) -> Any:
    if hasattr(value, "body_iterator"):
        return value.body_iterator
    if callable(getattr(value, "get_data", None)):
        return value.get_data()
    return value.body


def _headers_of(value: Any) -> HeaderPairs:
    raw = getattr(value, "raw_headers", None)
    if raw is not None:
        return [[name.decode("latin-1"), content.decode("latin-1")] for name, content in raw]
    headers = value.headers or {}
    pairs = headers.items() if hasattr(headers, "items") else headers
    return [[str.__str__(str(name)), str.__str__(str(content))] for name, content in pairs]


def _raw_piece(piece: object) -> bytes:
    if isinstance(piece, str):
        return str.encode(piece)
    if isinstance(piece, (bytes, bytearray, memoryview)):
        return plain_bytes(piece)
    raise TypeError("the body of a response may give bytes or str only, not %s" % type(piece).__name__)


def blocking_iterator(pieces: Pieces) -> Iterator[Any]:
    """An async iterator as a plain one, with an event loop of its own, for predictors that are not async."""
    if not hasattr(pieces, "__anext__"):
        return pieces
    return _drive(pieces)  # type: ignore[arg-type]


def _drive(pieces: AsyncIterator[Any]) -> Iterator[Any]:
    loop = late("asyncio").new_event_loop()
    try:
        while True:
            try:
                piece = loop.run_until_complete(pieces.__anext__())
            except StopAsyncIteration:
                return
            yield piece
    finally:
        if hasattr(pieces, "aclose"):
            loop.run_until_complete(pieces.aclose())
        loop.close()
