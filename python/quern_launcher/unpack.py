"""Unpacks a project's archive, a gzipped tar file. It trusts nothing in it, although Quern has made it.

Only plain files and directories whose paths stay inside the project; limits as in
src/contracts/limits/projects.ts. It stops as soon as one is passed.
"""

from __future__ import annotations

import os
import tarfile
import zlib
from typing import IO, TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable

FILES = "project"
BYTES_LIMIT = 512 * 1024 * 1024
ENTRIES_MAX = 100_000
DEPTH_MAX = 64
PATH_BYTES_MAX = 1024
NAME_BYTES_MAX = 255
# Besides the files: headers and padding.
HEADERS_BYTES_MAX = 256 * 1024 * 1024
# Of one header that tells more about the entry that follows, which is read at once.
EXTENDED_HEADER_BYTES_MAX = 1024 * 1024
PIECE_BYTES = 256 * 1024


class ArchiveError(Exception):
    """It is no archive of a project."""


def unpack(source: Callable[[int], bytes], directory: str) -> None:
    """Creates the project's files below `directory`, which is empty. `source(n)` gives up to n bytes of the archive,
    and none at its end. Raises ArchiveError, and what `source` raises.
    """
    try:
        with tarfile.open(fileobj=cast("Any", _Plain(source)), mode="r|", tarinfo=_Entry) as archive:
            _take_all(archive, directory)
    # tarfile calls itself for each header that extends the next one.
    except (tarfile.TarError, zlib.error, EOFError, ValueError, FileExistsError, RecursionError) as error:
        raise ArchiveError("the project's archive cannot be read: %s" % error) from None


def _take_all(archive: tarfile.TarFile, directory: str) -> None:
    total = 0
    entries = 0
    made = {directory}
    while True:
        entry = archive.next()
        if entry is None:
            return
        # The list of all members would grow with the archive.
        cast("Any", archive).members = []
        names = _names_of(entry)
        entries += 1
        total += entry.size
        if total >= BYTES_LIMIT:
            raise ArchiveError("the project has %d bytes or more" % BYTES_LIMIT)
        if names[:1] != [FILES]:
            continue
        parents = names[1:] if entry.isdir() else names[1:-1]
        for depth in range(1, len(parents) + 1):
            path = os.path.join(directory, *parents[:depth])
            if path not in made:
                os.makedirs(path, exist_ok=True)
                made.add(path)
        if entries + len(made) > 2 * ENTRIES_MAX:
            raise ArchiveError("the project has more than %d files and directories" % ENTRIES_MAX)
        if entry.isfile() and len(names) > 1:
            _write(archive.extractfile(entry), os.path.join(directory, *names[1:]), bool(entry.mode & 0o111))


def _names_of(entry: tarfile.TarInfo) -> list[str]:
    """The parts of its path. Raises ArchiveError for what a project cannot have."""
    path = entry.name
    if not (entry.isfile() or entry.isdir()):
        raise ArchiveError("%.200r is neither a file nor a directory" % path)
    names = [name for name in path.split("/") if name not in ("", ".")]
    if path.startswith("/") or ".." in names or "\0" in path:
        raise ArchiveError("%.200r leads out of the archive" % path)
    if len(names) > DEPTH_MAX + 1 or len(os.fsencode(path)) > PATH_BYTES_MAX + len(FILES) + 1:
        raise ArchiveError("%.200r is too long, or has too many directories above it" % path)
    if any(len(os.fsencode(name)) > NAME_BYTES_MAX for name in names):
        raise ArchiveError("%.200r has a name of more than %d bytes" % (path, NAME_BYTES_MAX))
    if entry.size < 0:
        raise ArchiveError("%.200r has an impossible size" % path)
    return names


def _write(content: IO[bytes] | None, path: str, is_executable: bool) -> None:
    # "x": an entry never writes through one before it.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        handle = os.open(path, flags, 0o755 if is_executable else 0o644)
    except (FileExistsError, NotADirectoryError):
        raise ArchiveError("%.200r is there twice" % path) from None
    with open(handle, "wb") as file:
        while content is not None:
            piece = content.read(PIECE_BYTES)
            if not piece:
                return
            file.write(piece)


class _Entry(tarfile.TarInfo):
    """tarfile reads such headers into memory, however long they say that they are."""

    def _proc_member(self, archive: Any) -> Any:
        kinds = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE)
        if self.type in (*kinds, tarfile.SOLARIS_XHDTYPE) and not 0 <= self.size <= EXTENDED_HEADER_BYTES_MAX:
            raise ArchiveError("a header has %d bytes" % self.size)
        if self.type == tarfile.GNUTYPE_SPARSE:
            raise ArchiveError("a file has holes")
        return super()._proc_member(archive)  # type: ignore[misc]


class _Plain:
    """The tar file inside of the gzip file, as an object with `read`."""

    def __init__(self, source: Callable[[int], bytes]) -> None:
        self._source = source
        self._gzip = zlib.decompressobj(wbits=31)
        self._read = 0

    def read(self, count: int) -> bytes:
        """Up to `count` bytes; fewer only at the end."""
        pieces = []
        while count:
            piece = self._some(count)
            if not piece:
                break
            pieces.append(piece)
            count -= len(piece)
        data = b"".join(pieces)
        self._read += len(data)
        if self._read > BYTES_LIMIT + HEADERS_BYTES_MAX:
            raise ArchiveError("the archive has more than %d bytes" % self._read)
        return data

    def _some(self, count: int) -> bytes:
        while not self._gzip.eof:
            data = self._gzip.unconsumed_tail or self._source(PIECE_BYTES)
            if not data:
                raise EOFError("it ends too early")
            piece = self._gzip.decompress(data, count)
            if piece:
                return piece
        return b""
