"""Forms, read in one pass over the body.

- multipart/form-data (RFC 7578): fields are text, files are objects whose contents are views into the body.
- application/x-www-form-urlencoded: fields are text.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from .charsets import decode
from .faults import PayloadError
from .header_values import parse_header_value, text_parameter
from .percent import unquoted

if TYPE_CHECKING:
    from collections.abc import Iterator

# The same as web frameworks: more is an attack, not a form.
PARTS_MAX = 1000
PART_HEAD_BYTES_MAX = 16 * 1024
PART_HEADERS_MAX = 32
# RFC 2046, section 5.1.1. The body is searched for it.
BOUNDARY_CHARACTERS_MAX = 70
# Takes 10 ms. A field of one byte becomes some 100 bytes of objects.
FIELDS_MAX = 10_000
# The part of an uploaded file that is searched for the end of a line.
_PEEKED_BYTES = 4096


class UploadedFile(io.RawIOBase):
    """A file of a form, as predict() gets it from `payload["name"]`: a binary file to read and seek, not to write.

    - `filename`: the name that the client gave it.
    - `content_type`: its type; `application/octet-stream` if the client named none.
    - `size`: its bytes.
    - `file`: the same object, because web frameworks keep the bytes there.
    """

    def __init__(self, filename: str, content_type: str, view: memoryview) -> None:
        super().__init__()
        self.filename = filename
        self.content_type = content_type
        self.size = len(view)
        self._view = view
        self._at = 0

    @property
    def file(self) -> UploadedFile:
        """This object."""
        return self

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        """The next `size` bytes, fewer at the end; all that are left by default. Empty at the end."""
        end = self.size if size is None or size < 0 else min(self.size, self._at + size)
        data = bytes(self._view[self._at : end])
        self._at = max(self._at, end)
        return data

    def peek(self, size: int = 0) -> bytes:
        """The next bytes, without consuming them. Without this method lines would be read byte by byte."""
        return bytes(self._view[self._at : self._at + max(size, _PEEKED_BYTES)])

    def readinto(self, buffer: Any) -> int:
        """Reads into a writable buffer of bytes; returns how many bytes came, 0 at the end."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        """All bytes that are left."""
        return self.read()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves to `offset` bytes from the start, the current position or the end; returns the position from the start.

        A position before the start becomes the start, one beyond the end the end. Raises KeyError for another
        `whence`.
        """
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = min(max(0, base + offset), self.size)
        return self._at

    def tell(self) -> int:
        """The position, in bytes from the start."""
        return self._at


def parse_multipart(body: bytes, boundary: str | None) -> Iterator[tuple[str, str | UploadedFile]]:
    """Yields (name, text or UploadedFile), in the order of the body.

    Raises PayloadError if the form is malformed or cut off, or has over PARTS_MAX parts.
    """
    if not boundary:
        raise PayloadError("the content type of a multipart form must name its boundary")
    if len(boundary) > BOUNDARY_CHARACTERS_MAX:
        raise PayloadError("the boundary of the multipart form has over %d characters" % BOUNDARY_CHARACTERS_MAX)
    delimiter = b"--" + boundary.encode("utf-8", "replace")
    view = memoryview(body)
    at = body.find(delimiter)
    if at < 0:
        raise PayloadError("the multipart form has no part: its boundary is not in the body")
    for _ in range(PARTS_MAX):
        at += len(delimiter)
        if body[at : at + 2] == b"--":
            return
        head_start = body.find(b"\r\n", at)
        head_end = body.find(b"\r\n\r\n", at)
        end = body.find(b"\r\n" + delimiter, max(at, head_end))
        if head_start < 0 or head_end < 0 or end < 0 or head_end - head_start > PART_HEAD_BYTES_MAX:
            raise PayloadError("the multipart form is cut off, or a part of it is malformed")
        yield _part(body[head_start + 2 : head_end], view[head_end + 4 : end])
        at = end + 2
    raise PayloadError("the multipart form has over %d parts" % PARTS_MAX)


def parse_urlencoded(body: bytes, charset: str) -> Iterator[tuple[str, str]]:
    """Yields (name, text), in the order of the body. Percent-encoded text is UTF-8; other text is in `charset`.

    Raises PayloadError for over FIELDS_MAX fields, and for bytes that are not text in `charset`.
    """
    if body.count(b"&") >= FIELDS_MAX:
        raise PayloadError("the form has over %d fields; send them as JSON" % FIELDS_MAX)
    for field in decode(body, charset, "the body").split("&"):
        if field:
            name, _, value = field.partition("=")
            yield _form_text(name), _form_text(value)


def _form_text(text: str) -> str:
    text = text.replace("+", " ")
    return unquoted(text.encode()).decode("utf-8", "replace") if "%" in text else text


def _part(head: bytes, content: memoryview) -> tuple[str, str | UploadedFile]:
    headers = _headers(head)
    _, disposition = parse_header_value(headers.get("content-disposition", ""))
    content_type = headers.get("content-type")
    _, parameters = parse_header_value(content_type or "")
    name = text_parameter(disposition, "name")
    if name is None:
        raise PayloadError("a part of the multipart form has no name")
    filename = text_parameter(disposition, "filename")
    if filename is None:
        # As mail programs name attachments.
        filename = text_parameter(parameters, "name")
    if filename is not None:
        return name, UploadedFile(filename, content_type or "application/octet-stream", content)
    return name, decode(content, parameters.get("charset", "utf-8"), "the field %s of the form" % ascii(name[:100]))


def _headers(head: bytes) -> dict[str, str]:
    """By name in lower case; of two with one name the first counts."""
    if head.count(b"\r\n") >= PART_HEADERS_MAX:
        raise PayloadError("a part of the multipart form has over %d headers" % PART_HEADERS_MAX)
    headers: dict[str, str] = {}
    for line in head.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        headers.setdefault(name.strip().lower(), value.strip())
    return headers
