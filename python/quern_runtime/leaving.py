"""The end of the worker's process. It never waits for threads that user code left behind, as Python would."""

from __future__ import annotations

import atexit
import os
import signal
import traceback
from typing import TYPE_CHECKING

from .log_stream import close_standard_streams, report

if TYPE_CHECKING:
    from typing import NoReturn


def exit_code(error: SystemExit) -> int:
    """As Python's own, but texts are not printed."""
    return (error.code if isinstance(error.code, int) else int(error.code is not None)) & 0xFF


def leave(code: int) -> NoReturn:
    """The planned end, with the exit functions of user code."""
    try:
        atexit._run_exitfuncs()
        close_standard_streams()
    finally:
        os._exit(code)


def crash() -> NoReturn:
    """Call this while an exception is handled that ended a thread of the runtime: a late one of user code, such as that
    of a forgotten alarm, or a bug. Writes its traceback; the closed sockets tell the callers.
    """
    try:
        # The alarm may ring again.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        report("this process ends, because an exception came while predict() did not run\n" + traceback.format_exc())
        close_standard_streams()
    finally:
        os._exit(1)
