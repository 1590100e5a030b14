"""The file behind stdout and stderr, kept within bounds: its content moves to `<file>.1` when it is full.

The older file's first line says how many bytes of the log went before it, so that readers know their position.
The server does the same for output that C code and child processes write to the descriptor
(src/observe/log-rotation.ts); a lock file keeps the two apart.
"""

from __future__ import annotations

import errno
import os
import re
import threading
import time

FILE_BYTES_MAX = 8 * 1024 * 1024
# If rotation is not possible (a full disk, another process rotates), lines beyond this size are dropped.
HARD_BYTES_MAX = 16 * 1024 * 1024
# The file's size is checked after this many bytes, not with every line.
UNSEEN_BYTES_MAX = 64 * 1024
COPY_BYTES = 256 * 1024
HEADER = re.compile(rb"^\S+ quern: (\d+) bytes before this line were dropped[^\n]*\n")
HEADER_BYTES_MAX = 256
FULL = (errno.ENOSPC, errno.EDQUOT)


class LogFile:
    """Whole lines to descriptors of one file, within the bounds. Without a path (tests, tools) nothing is bounded."""

    def __init__(self, path: str | None) -> None:
        self._lock = threading.RLock()
        self.move_to(path)
        os.register_at_fork(after_in_child=self._after_fork)

    def move_to(self, path: str | None) -> None:
        """The descriptors are of this file from now on."""
        with self._lock:
            self._path = path
            self._identity = None if path is None else _identity(os.stat(path))
            # Bytes written since the file's size was checked.
            self._unseen = UNSEEN_BYTES_MAX
            # Dropped bytes, not yet reported in the log.
            self._lost = 0

    def _after_fork(self) -> None:
        self._lock = threading.RLock()
        self._lost = 0

    def append(self, descriptor: int, data: bytes | bytearray) -> None:
        """Writes lines. A full disk loses them, but print() in user code never fails because of the log."""
        with self._lock:
            self._unseen += len(data)
            if self._unseen > UNSEEN_BYTES_MAX and not self._has_room_for(descriptor, len(data)):
                self._lost += len(data)
                return
            if self._lost:
                note = b"%s quern: %d bytes were dropped here: the disk was full\n"
                data = note % (stamp().encode(), self._lost) + data
            self._write(descriptor, data)

    def _write(self, descriptor: int, data: bytes | bytearray) -> None:
        view = memoryview(data)
        lost, self._lost = self._lost, 0
        try:
            while view:
                view = view[os.write(descriptor, view) :]
        except OSError as error:
            if error.errno not in FULL:
                raise
            self._lost = lost + len(view)

    def _has_room_for(self, descriptor: int, size: int) -> bool:
        if self._path is None:
            return True
        status = os.fstat(descriptor)
        self._unseen = 0
        if status.st_size + size <= FILE_BYTES_MAX:
            return True
        if _identity(status) != self._identity:
            # User code has put its own file there, which must not be truncated.
            return True
        self._rotate(self._path, descriptor)
        if os.fstat(descriptor).st_size + size <= HARD_BYTES_MAX:
            return True
        self._unseen = UNSEEN_BYTES_MAX
        return False

    def _rotate(self, path: str, descriptor: int) -> None:
        lock = path + ".lock"
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except OSError:
            return
        try:
            _move_to_older(path, descriptor)
        except OSError:
            _remove(path + ".1.new")
        finally:
            _remove(lock)


def _move_to_older(path: str, descriptor: int) -> None:
    """Copied, because children of user code have the same file open: it must stay the same one."""
    older, new = path + ".1", path + ".1.new"
    header = header_line(dropped_with(older))
    with open(path, "rb") as source, open(new, "wb", opener=_private) as target:
        target.write(header)
        while True:
            piece = source.read(COPY_BYTES)
            if not piece:
                break
            target.write(piece)
    os.rename(new, older)
    os.ftruncate(descriptor, 0)


def dropped_with(older: str) -> int:
    """The bytes of a log that are gone when its older file is: those before it, and its own."""
    try:
        with open(older, "rb") as file:
            found = HEADER.match(file.read(HEADER_BYTES_MAX))
            size = os.fstat(file.fileno()).st_size
    except OSError:
        return 0
    return size if found is None else int(found.group(1)) + size - found.end()


def header_line(dropped: int) -> bytes:
    """The first line of an older file, which HEADER reads."""
    text = "%s quern: %d bytes before this line were dropped; a worker's log keeps its newest 8 to 16 MiB\n"
    return (text % (stamp(), dropped)).encode()


def stamp() -> str:
    """The time now, as RFC 3339 with milliseconds, in UTC."""
    seconds = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + ".%03dZ" % (seconds % 1 * 1000)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
