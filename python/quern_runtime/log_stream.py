"""stdout and stderr of user code: whole lines with a timestamp, straight to the descriptor's file.

What a C library or a child process writes to the same descriptor has no timestamp; readers give it the one before.
"""

import errno
import io
import os
import sys
import threading
import time


class StampedLines(io.TextIOBase):
    """A text stream that writes `<RFC 3339 time> <line>` to a file descriptor, each write() with whole lines only."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, descriptor):
        super().__init__()
        self._descriptor = descriptor
        self._partial = ""
        self._lock = threading.RLock()
        self.buffer = io.FileIO(descriptor, "w", closefd=False)
        os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self):
        self._lock = threading.RLock()
        self._partial = ""

    def write(self, text):
        with self._lock:
            lines = (self._partial + text).split("\n")
            self._partial = lines.pop()
            if lines:
                self._emit(lines)
        return len(text)

    def _emit(self, lines):
        stamp = _now()
        data = "".join("%s %s\n" % (stamp, line) for line in lines).encode("utf-8", "backslashreplace")
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            # A full disk: lines are lost, but no print() of user code fails for its log.
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise

    def close_line(self):
        """Ends a line that user code left open, so that it is not lost."""
        with self._lock:
            if self._partial:
                line, self._partial = self._partial, ""
                self._emit([line])

    def fileno(self):
        return self._descriptor

    def writable(self):
        return True


def _now():
    seconds = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + ".%03dZ" % (seconds % 1 * 1000)


def report(text):
    """A line or more of the runtime's own among user code's, whatever user code has put in the place of sys.stderr."""
    for stream in (sys.stderr, sys.__stderr__):
        try:
            stream.write(text if text.endswith("\n") else text + "\n")
            return
        except BaseException:
            continue


def redirect_standard_streams():
    """Puts stamped streams in the place of sys.stdout and sys.stderr."""
    sys.stdout = sys.__stdout__ = StampedLines(1)
    sys.stderr = sys.__stderr__ = StampedLines(2)


def close_standard_streams():
    """Writes what is left of open lines. User code may have put other streams in their place."""
    for stream in (sys.__stdout__, sys.__stderr__):
        if isinstance(stream, StampedLines):
            stream.close_line()
