"""`python -m quern_runtime --listen ADDRESS --note FILE`; the token is in QUERN_WORKER_TOKEN.

ADDRESS is `unix:PATH`, `tcp:HOST:PORT` (loopback only), or `tls:HOST:PORT` with `--certificate FILE --key FILE`.
A launcher gives `--launcher`, a descriptor, and `--project`, a directory (launcher_link.py).

`--template` instead: a process that forks workers on request (template.py), each with such arguments and environment.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys

from . import capability
from .launcher_link import LauncherLink
from .leaving import crash, exit_code, leave
from .listening import listen
from .log_stream import redirect_standard_streams
from .note import Note
from .template import Template
from .worker import Worker

# No space or inode on the disk, no quota, or no file handle: the process that starts this one waits, and tries again.
SHORTAGES = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)


def main() -> None:
    if sys.argv[1:2] == ["--template"]:
        request = Template().serve()
        if request is None:
            return
        sys.argv[1:] = request["arguments"]
        # Since Python 3.10.
        if hasattr(sys, "orig_argv"):
            sys.orig_argv[-2:] = request["arguments"]
        os.environ.update(request["environment"])
        capability.learn()
    parser = argparse.ArgumentParser(prog="quern_runtime")
    parser.add_argument("--listen", required=True)
    parser.add_argument("--note", required=True)
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    parser.add_argument("--launcher", type=int)
    parser.add_argument("--project")
    arguments = parser.parse_args()
    token = os.environ.pop("QUERN_WORKER_TOKEN")
    redirect_standard_streams()
    try:
        listener = listen(arguments.listen, arguments.certificate, arguments.key)
        worker = Worker(listener, Note(arguments.note), token, LauncherLink(arguments.launcher, arguments.project))
    except ValueError as error:
        print(error, file=sys.stderr)
        leave(os.EX_USAGE)
    except OSError as error:
        if error.errno not in SHORTAGES:
            raise
        print("cannot start now: %s" % error, file=sys.stderr)
        leave(os.EX_TEMPFAIL)
    try:
        worker.run()
    except SystemExit as error:
        # A signal handler of user code has asked for the end.
        leave(exit_code(error))
    except BaseException:
        crash()
    leave(0)


# Guarded: user code that starts processes by "spawn" imports this file again.
if __name__ == "__main__":
    main()
