"""multipart/form-data (RFC 7578): fields as text, files as objects. File contents are views into the body, not copies."""

import io
from email.message import Message

from .faults import PayloadError

# As web frameworks do: more is an attack, not a form.
PARTS_MAX = 1000
PART_HEAD_BYTES_MAX = 16 * 1024


class UploadedFile(io.RawIOBase):
    """A file of a form: `filename`, `content_type`, `size` in bytes, and the methods of a binary file to read and seek."""

    def __init__(self, filename, content_type, view):
        super().__init__()
        self.filename = filename
        self.content_type = content_type
        self.size = len(view)
        self._view = view
        self._at = 0

    def readable(self):
        return True

    def seekable(self):
        return True

    def read(self, size=-1):
        """The next `size` bytes; all that are left by default."""
        end = self.size if size is None or size < 0 else min(self.size, self._at + size)
        data = bytes(self._view[self._at : end])
        self._at = max(self._at, end)
        return data

    def readinto(self, buffer):
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def readall(self):
        return self.read()

    def seek(self, offset, whence=io.SEEK_SET):
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        self._at = min(max(0, base + offset), self.size)
        return self._at

    def tell(self):
        return self._at


def parse_multipart(body, boundary):
    """Yields (name, text or UploadedFile), in the order of the body."""
    if not boundary:
        raise PayloadError("the content type of a multipart form must name its boundary")
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


def _part(head, content):
    message = Message()
    for line in head.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        message[name.strip()] = value.strip()
    name = message.get_param("name", header="content-disposition")
    if not isinstance(name, str):
        raise PayloadError("a part of the multipart form has no name")
    filename = message.get_filename()
    if filename is not None:
        return name, UploadedFile(filename, message.get("content-type", "application/octet-stream"), content)
    try:
        return name, bytes(content).decode(message.get_content_charset("utf-8"))
    except (UnicodeDecodeError, LookupError) as error:
        raise PayloadError('the field "%s" of the form is not text: %s' % (name, error)) from None
