"""Keeps a worker running: starts it again after each death, at once or, if it dies soon again and again, with growing
pauses. On SIGTERM the worker drains, and then all ends.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import time
from typing import TYPE_CHECKING, Any

from .settings import SettingsError
from .worker_process import WorkerProcess

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .facts import Facts
    from .settings import Settings

# One that lives for less time has died soon.
SOON_S = 10.0
PAUSE_FIRST_S = 0.1
PAUSE_MAX_S = 30.0
# Between SIGKILL and the end of kubelet's patience.
KILL_BEFORE_S = 1.0


def pause_after(early_deaths: int) -> float:
    """Seconds before the next start. The first death costs none."""
    return 0.0 if early_deaths < 2 else min(PAUSE_MAX_S, PAUSE_FIRST_S * 2.0 ** min(early_deaths - 2, 20))


class Supervisor:
    """Waits in one place for the signals of this process, its worker's words and its output."""

    def __init__(self, settings: Settings, facts: Facts) -> None:
        self._settings = settings
        self._facts = facts
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        for end in (self._woken, self._waker):
            end.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._kill_at: float | None = None
        self._worker: WorkerProcess | None = None
        # What the worker has said last.
        self._said: str | None = None
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._on_sigterm)
        signal.signal(signal.SIGINT, self._on_sigterm)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)

    def run(self, python: str, project: str, environment: Mapping[str, str]) -> None:
        """Returns when the pod may end."""
        early_deaths = 0
        while self._kill_at is None:
            begun = time.monotonic()
            last_exit = self._run_once(python, project, environment)
            self._facts.ended(last_exit)
            is_done = self._said == "draining" and last_exit.get("code") == 0
            if self._kill_at is not None or (is_done and self._settings.ends_with_worker):
                return
            early_deaths = early_deaths + 1 if self._died_soon(begun) else 0
            if self._said != "failed":
                self._facts.enter("starting", "the worker %s" % _describe(last_exit))
            self._rest(pause_after(early_deaths))

    def _died_soon(self, begun: float) -> bool:
        """In a job the controller bounds the deaths of workers that were ready: a batch may be the cause."""
        is_of_batch = self._settings.ends_with_worker and self._said == "ready"
        return time.monotonic() - begun < SOON_S and not is_of_batch

    def _run_once(self, python: str, project: str, environment: Mapping[str, str]) -> dict[str, Any]:
        self._said = None
        try:
            worker = WorkerProcess(self._settings, python, project, self._facts.note_file, environment)
        except (OSError, SettingsError) as error:
            return {"code": os.EX_OSERR, "last_lines": [str(error)], "note": None}
        self._worker = worker
        self._facts.started(worker.pid)
        watched = [worker.link.fileno(), worker.output]
        for descriptor in watched:
            self._selector.register(descriptor, selectors.EVENT_READ)
        if self._kill_at is not None:
            worker.signal(signal.SIGTERM)
        try:
            return self._watch(worker, watched)
        finally:
            self._worker = None

    def _watch(self, worker: WorkerProcess, watched: list[int]) -> dict[str, Any]:
        while True:
            ready = self._wait(None if self._kill_at is None else max(0.0, self._kill_at - time.monotonic()))
            if worker.output in ready and not worker.forward_output():
                self._forget(watched, worker.output)
            if worker.link.fileno() in ready:
                for said in worker.hear():
                    self._learn(said)
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                worker.signal(signal.SIGKILL)
            self._reap_others(worker.pid)
            ended = worker.reap()
            if ended is None:
                continue
            for said in worker.hear():
                self._learn(said)
            for descriptor in list(watched):
                self._forget(watched, descriptor)
            worker.close()
            return ended

    def _forget(self, watched: list[int], descriptor: int) -> None:
        watched.remove(descriptor)
        self._selector.unregister(descriptor)

    def _learn(self, said: dict[str, Any]) -> None:
        state = said["state"]
        fault = said.get("fault")
        self._said = state
        reason = None if fault is None else "%s failed: %s: %s" % (fault["stage"], fault["type"], fault["message"])
        self._facts.enter(state, reason)

    def _wait(self, timeout: float | None) -> list[int]:
        """The descriptors that can be read."""
        ready = [key.fd for key, _ in self._selector.select(timeout)]
        if self._woken.fileno() in ready:
            self._woken.recv(4096)
        return ready

    def _rest(self, seconds: float) -> None:
        """Ends early on SIGTERM."""
        until = time.monotonic() + seconds
        while self._kill_at is None and time.monotonic() < until:
            self._wait(until - time.monotonic())
            self._reap_others(None)

    def _reap_others(self, worker: int | None) -> None:
        """As the first process of a container, this one is the parent of all that user code leaves behind."""
        while hasattr(os, "waitid"):
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            # The worker's status is for `reap`; others wait until the worker is gone, too.
            if found is None or found.si_pid == worker:
                return
            os.waitpid(found.si_pid, 0)

    def _on_sigterm(self, *_: object) -> None:
        if self._kill_at is not None:
            return
        self._kill_at = time.monotonic() + max(0.0, self._settings.grace_s - KILL_BEFORE_S)
        self._facts.drain()
        if self._worker is not None:
            self._worker.signal(signal.SIGTERM)


def _describe(last_exit: dict[str, Any]) -> str:
    if last_exit.get("out_of_memory"):
        return "was killed because the container ran out of memory"
    if "signal" in last_exit:
        return "was killed by %s" % last_exit["signal"]
    return "exited with code %d" % last_exit["code"]
