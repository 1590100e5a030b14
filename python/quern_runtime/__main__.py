"""`python -m quern_runtime --listen unix:PATH|tcp:HOST:PORT --note FILE`; the token is in QUERN_WORKER_TOKEN."""

from __future__ import annotations

import argparse
import atexit
import errno
import os
import sys
from typing import TYPE_CHECKING

from .connection import listen
from .log_stream import close_standard_streams, redirect_standard_streams
from .note import Note
from .worker import Worker

if TYPE_CHECKING:
    from typing import NoReturn

# No space or inode on the disk, no quota, or no file handle: the process that starts this one waits, and tries again.
SHORTAGES = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)


def main() -> None:
    parser = argparse.ArgumentParser(prog="quern_runtime")
    parser.add_argument("--listen", required=True)
    parser.add_argument("--note", required=True)
    arguments = parser.parse_args()
    token = os.environ.pop("QUERN_WORKER_TOKEN")
    redirect_standard_streams()
    try:
        worker = Worker(listen(arguments.listen), Note(arguments.note), token)
    except OSError as error:
        if error.errno not in SHORTAGES:
            raise
        print("cannot start now: %s" % error, file=sys.stderr)
        leave(os.EX_TEMPFAIL)
    worker.run()
    leave(0)


def leave(code: int) -> NoReturn:
    """Ends the process without waiting for threads that user code left behind."""
    try:
        atexit._run_exitfuncs()
        close_standard_streams()
    finally:
        os._exit(code)


# Guarded: user code that starts processes by "spawn" imports this file again.
if __name__ == "__main__":
    main()
