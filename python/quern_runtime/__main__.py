"""`python -m quern_runtime --listen unix:PATH|tcp:HOST:PORT --note FILE`; the token is in QUERN_WORKER_TOKEN."""

import argparse
import os

from .connection import listen
from .log_stream import redirect_standard_streams
from .note import Note
from .worker import Worker, leave


def main():
    parser = argparse.ArgumentParser(prog="quern_runtime")
    parser.add_argument("--listen", required=True)
    parser.add_argument("--note", required=True)
    arguments = parser.parse_args()
    token = os.environ.pop("QUERN_WORKER_TOKEN")
    redirect_standard_streams()
    worker = Worker(listen(arguments.listen), Note(arguments.note), token)
    worker.run()
    leave(0)


# Guarded: user code that starts processes by "spawn" imports this file again.
if __name__ == "__main__":
    main()
