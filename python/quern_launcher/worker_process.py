"""One process of the worker: its start, its output, what it says of its state, and how it ended."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from .hidden import hide_own_keys
from .note_reader import read_note

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .settings import Settings

LAST_BYTES = 4096
LAST_LINES = 10
READ_BYTES = 64 * 1024
# The kernel counts the worker as if it used half of the memory more, so that the launcher stays.
WORKER_OOM_SCORE = 500
OOM_SCORE_MAX = 1000
# As src/engine/local/worker-process.ts: the runtime's modules come before the project is on the path.
_BOOT = "import sys; sys.path[0] = %r; from quern_runtime.__main__ import main; main()"
_RUNTIME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class WorkerProcess:
    """Starts it. `environment` is that of user code; the token is not seen there. Raises OSError."""

    def __init__(
        self, settings: Settings, python: str, project: str, note: str, environment: Mapping[str, str]
    ) -> None:
        self.link, ours = socket.socketpair()
        self.link.setblocking(False)
        self._note = note
        self._kills = _memory_kills()
        self._last = bytearray()
        self._said = bytearray()
        listen = "tcp:%s" if not os.path.exists(settings.secret("tls.crt")) else "tls:%s"
        arguments = ["--listen", listen % str(settings.listen), "--note", note, "--launcher", str(ours.fileno())]
        arguments += ["--project", project]
        if listen.startswith("tls"):
            arguments += ["--certificate", settings.secret("tls.crt"), "--key", settings.secret("tls.key")]
        self._process = subprocess.Popen(
            [python, "-E", "-c", _BOOT % _RUNTIME, *arguments],
            cwd=settings.run,
            env={**environment, "QUERN_WORKER_TOKEN": settings.token()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[ours.fileno()],
            start_new_session=True,
        )
        ours.close()
        self.pid = self._process.pid
        assert self._process.stdout is not None
        self.output = self._process.stdout.fileno()
        os.set_blocking(self.output, False)
        _prefer_to_kill(self.pid)

    def forward_output(self) -> bool:
        """To the pod's log, from which `kubectl logs` reads. False at the end of the output."""
        try:
            data = os.read(self.output, READ_BYTES)
        except BlockingIOError:
            return True
        if not data:
            return False
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        self._last = (self._last + data)[-LAST_BYTES:]
        return True

    def hear(self) -> list[dict[str, Any]]:
        """What it has said of its state since the last call."""
        try:
            data = self.link.recv(READ_BYTES)
        except OSError:
            return []
        self._said += data
        *lines, rest = self._said.split(b"\n")
        self._said = bytearray(rest)
        return [json.loads(line) for line in lines]

    def signal(self, number: int) -> None:
        """To the process and its forks."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass

    def reap(self) -> dict[str, Any] | None:
        """How it ended, as facts for the controller; None while it runs. Ends its forks, too."""
        pid, status, used = os.wait4(self.pid, os.WNOHANG)
        if pid == 0:
            return None
        # Popen would wait for it.
        self._process.returncode = code = os.waitstatus_to_exitcode(status)
        self.signal(signal.SIGKILL)
        while self._has_output() and self.forward_output():
            pass
        lines = hide_own_keys(self._last.decode("utf-8", "replace")).rstrip().split("\n")[-LAST_LINES:]
        is_out_of_memory = code == -signal.SIGKILL and _memory_kills() > self._kills
        return {
            **({"code": code} if code >= 0 else {"signal": signal.Signals(-code).name}),
            **({"out_of_memory": True} if is_out_of_memory else {}),
            "peak_memory_bytes": used.ru_maxrss * 1024,
            "last_lines": lines,
            "note": read_note(self._note),
        }

    def close(self) -> None:
        """After its end."""
        self.link.close()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _has_output(self) -> bool:
        return bool(select.select([self.output], [], [], 0)[0])


def _memory_kills() -> int:
    """Processes of this container that the kernel has killed for its memory limit (cgroup v2, or v1)."""
    for path in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        try:
            with open(path) as events:
                counts = dict(line.split() for line in events)
            return int(counts.get("oom_kill", 0))
        except (OSError, ValueError):
            pass
    return 0


def _prefer_to_kill(pid: int) -> None:
    try:
        with open("/proc/self/oom_score_adj") as own:
            score = min(OOM_SCORE_MAX, int(own.read()) + WORKER_OOM_SCORE)
        with open("/proc/%d/oom_score_adj" % pid, "w") as target:
            target.write(str(score))
    except (OSError, ValueError):
        # The worker is gone, or this is not Linux.
        pass
