"""What user code may change in its process besides Python objects, so that a job can begin as the first one did."""

from __future__ import annotations

import os
import signal
import sys

TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


class ProcessState:
    """The working directory, environment, umask, search path of modules, and how signals are taken, as they are now."""

    def __init__(self) -> None:
        self._directory = os.getcwd()
        self._environment = dict(os.environ)
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self._path = list(sys.path)
        self._blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}

    def restore(self) -> None:
        """Makes it so again, and ends timers. Threads, open files and changed modules stay."""
        for timer in TIMERS:
            signal.setitimer(timer, 0)
        os.chdir(self._directory)
        os.umask(self._umask)
        sys.path[:] = self._path
        if dict(os.environ) != self._environment:
            os.environ.clear()
            os.environ.update(self._environment)
        for number, handler in self._handlers.items():
            # None is a handler that was not installed from Python.
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._blocked)
