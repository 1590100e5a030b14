"""A process that has loaded this runtime and forks workers: that takes some milliseconds, a new Python a hundred.

Requests and replies are lines of JSON on two sockets (docs/decisions/0032-worker-templates.md). It never loads code of
users. When no more requests can come it ends; its workers go on.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING, Any

from . import wear

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUESTS, REPLIES = 3, 4
READ_BYTES = 64 * 1024


class Template:
    """Forks workers, and reports how each of them ended."""

    def __init__(self) -> None:
        # The requests whose workers run, by process.
        self._ids: dict[int, str] = {}
        self._woken, self._waker = socket.socketpair()
        for end in (self._woken, self._waker):
            end.setblocking(False)
        self._partial = b""

    def serve(self) -> dict[str, Any] | None:
        """Returns in each worker, with the request that it was forked for; None in the template, at its end."""
        if _has_company():
            os._exit(os.EX_UNAVAILABLE)
        for stream in (sys.stdout, sys.stderr):
            # Texts of the environment. A worker would write its copy of them.
            stream.flush()
        gc.collect()
        gc.freeze()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        _reply(ready=True)
        while True:
            readable, _, _ = select.select([REQUESTS, self._woken], [], [])
            if self._woken in readable:
                self._woken.recv(READ_BYTES)
                self._report_ends()
            if REQUESTS in readable:
                data = os.read(REQUESTS, READ_BYTES)
                if not data:
                    return None
                for request in self._requests(data):
                    if self._fork(request) == 0:
                        return request

    def _requests(self, data: bytes) -> Iterator[dict[str, Any]]:
        *lines, self._partial = (self._partial + data).split(b"\n")
        for line in lines:
            # As Python decodes arguments and the environment.
            yield json.loads(os.fsdecode(line))

    def _fork(self, request: dict[str, Any]) -> int:
        """Zero in the worker. Without room for one more process, its end is reported at once."""
        try:
            pid = os.fork()
        except OSError:
            _reply(ended=request["id"], code=os.EX_OSERR)
            return -1
        if pid == 0:
            self._become_worker(request)
        else:
            self._ids[pid] = request["id"]
        return pid

    def _become_worker(self, request: dict[str, Any]) -> None:
        """Leaves nothing of the template open. It says itself that it runs: the template may be killed at any time."""
        try:
            log = os.open(request["environment"]["QUERN_WORKER_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            nothing = os.open(os.devnull, os.O_RDONLY)
        except OSError:
            os._exit(os.EX_TEMPFAIL)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._woken.close()
        self._waker.close()
        os.setsid()
        _show(request["arguments"])
        _reply(started=request["id"], pid=os.getpid())
        for descriptor, standard in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(descriptor, standard)
        for descriptor in (nothing, log, REQUESTS, REPLIES):
            os.close(descriptor)
        wear.born = time.monotonic()

    def _report_ends(self) -> None:
        while self._ids:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            request_id = self._ids.pop(pid, None)
            if request_id is not None:
                code = os.waitstatus_to_exitcode(status)
                _reply(ended=request_id, **({"code": code} if code >= 0 else {"signal": -code}))


def _has_company() -> bool:
    """Whether the environment starts threads or processes with each Python. A worker that is forked would have neither;
    it would have the locks of the threads, and the processes would be the template's.
    """
    tasks = os.listdir("/proc/self/task")
    if len(tasks) > 1:
        return True
    with open("/proc/self/task/%s/children" % tasks[0]) as children:
        return bool(children.read())


def _reply(**fields: object) -> None:
    """One write: lines of the template and of a worker that begins do not mix."""
    os.write(REPLIES, json.dumps(fields).encode() + b"\n")


def _show(arguments: list[str]) -> None:
    """`ps` shows the worker's arguments, and no longer its template's. They are in memory that the process may write
    (proc(5)); whoever starts a template leaves room for them behind `--template`.
    """
    try:
        with open("/proc/self/stat", "rb") as stat:
            # From the third field on: the name before it may hold anything.
            fields = stat.read().rpartition(b")")[2].split()
        start, end = int(fields[45]), int(fields[46])
        with open("/proc/self/cmdline", "rb") as shown:
            before = shown.read().index(b"--template\0")
        room = end - start - before
        text = b"".join(os.fsencode(argument) + b"\0" for argument in arguments)
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(start + before)
            memory.write(text[: room - 1].ljust(room, b"\0"))
    except (OSError, ValueError, IndexError):
        # This kernel does not allow it.
        pass
