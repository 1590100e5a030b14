"""stdout and stderr of user code: whole lines with a timestamp, straight to the descriptor's file.

What a C library or a child process writes to the same descriptor has no timestamp; readers give it the one before.
"""

from __future__ import annotations

import io
import os
import sys
import threading
from typing import Any

from .capability import hide
from .log_file import LogFile, stamp

# Including its timestamp and the note about the rest.
LINE_BYTES_MAX = 64 * 1024
TEXT_BYTES_MAX = LINE_BYTES_MAX - 128
# Lines are written in blocks of about this size, so that the file's bound holds within one print() too.
BLOCK_BYTES = 256 * 1024

# The file of both standard streams.
_log = LogFile(None)


class StampedLines(io.TextIOBase):
    """A text stream that writes `<RFC 3339 time> <line>` to a log file, each write() with whole lines only."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, descriptor: int, log: LogFile) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._log = log
        self._partial = ""
        # The bytes of the open line that exceed the limit of a line.
        self._cut = 0
        self._lock = threading.RLock()
        self.buffer = io.FileIO(descriptor, "w", closefd=False)
        os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        self._lock = threading.RLock()
        self._partial = ""
        self._cut = 0

    def write(self, text: str) -> int:
        """Writes the lines that are complete now; the rest waits for its end. Returns the length of the text."""
        with self._lock:
            lines = (self._partial + text).split("\n")
            self._partial = lines.pop()
            if lines:
                self._emit(lines)
            if len(self._partial) > TEXT_BYTES_MAX:
                self._cut += len(_encoded(self._partial[TEXT_BYTES_MAX:]))
                self._partial = self._partial[:TEXT_BYTES_MAX]
        return len(text)

    def _emit(self, lines: list[str]) -> None:
        lines = [hide(line) for line in lines]
        if len(lines) == 1 and not self._cut and len(lines[0]) < TEXT_BYTES_MAX // 4:
            self._log.append(self._descriptor, _encoded("%s %s\n" % (stamp(), lines[0])))
            return
        prefix = (stamp() + " ").encode()
        block = bytearray()
        for line in lines:
            data = _encoded(line)
            if self._cut or len(data) > TEXT_BYTES_MAX:
                data = self._shortened(data)
            block += prefix + data + b"\n"
            if len(block) > BLOCK_BYTES:
                self._log.append(self._descriptor, block)
                block = bytearray()
        if block:
            self._log.append(self._descriptor, block)

    def _shortened(self, data: bytes) -> bytes:
        cut, self._cut = self._cut, 0
        kept = data[:TEXT_BYTES_MAX]
        cut += len(data) - len(kept)
        return kept.decode("utf-8", "ignore").encode() + b" ... quern: %d bytes of this line were dropped" % cut

    def close_line(self) -> None:
        """Ends a line that user code left open, so that it is not lost."""
        with self._lock:
            if self._partial:
                line, self._partial = self._partial, ""
                self._emit([line])

    def fileno(self) -> int:
        """The descriptor, so that child processes of user code write to the same file."""
        return self._descriptor

    def writable(self) -> bool:
        return True


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def report(text: str) -> None:
    """Writes lines of the runtime among those of user code, even if user code has replaced sys.stderr."""
    stream: Any
    for stream in (sys.stderr, sys.__stderr__):
        try:
            stream.write(text if text.endswith("\n") else text + "\n")
            return
        except BaseException:
            continue


def log_to(path: str) -> None:
    """From now on, what this process and its future children print goes to another file: that of its next job."""
    close_standard_streams()
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        for standard in (1, 2):
            os.dup2(descriptor, standard)
    finally:
        os.close(descriptor)
    _log.move_to(path)


def redirect_standard_streams() -> None:
    """Replaces sys.stdout and sys.stderr by stamped streams. Both write to one file, whose path the server gives."""
    path = os.environ.pop("QUERN_WORKER_LOG", None)
    if path is not None:
        _log.move_to(path)
    sys.stdout = sys.__stdout__ = StampedLines(1, _log)  # type: ignore[misc, assignment]
    sys.stderr = sys.__stderr__ = StampedLines(2, _log)  # type: ignore[misc, assignment]


def close_standard_streams() -> None:
    """Writes the rest of open lines. User code may have replaced the streams."""
    stream: Any
    for stream in (sys.__stdout__, sys.__stderr__):
        if isinstance(stream, StampedLines):
            stream.close_line()
