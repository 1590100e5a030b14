"""What is known of the pod's worker: written by the main thread, read by that of the health server. A file keeps what
must outlive the container: kubelet starts a container again in the same pod.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

from .note_reader import read_note
from .preparation_error import describe_failure

# The states of a pod, in order; `failed` and `draining` may come at any time.
STATES = ("fetching", "installing", "starting", "initializing", "ready", "failed", "draining")


class Facts:
    """`directory` is the pod's own. Nothing in here ever raises for a full or lost disk."""

    def __init__(self, directory: str) -> None:
        self._lock = threading.Lock()
        self._file = os.path.join(directory, "worker.json")
        self.note_file = os.path.join(directory, "note")
        self._state = "fetching"
        self._reason: str | None = None
        # Why the pod is not prepared, and since when, until it is.
        self._failure: dict[str, Any] | None = None
        self._failing_since = 0.0
        self._is_draining = False
        self._pid: int | None = None
        kept = self._read()
        self._starts: int = kept.get("starts", 0)
        self._last_exit: dict[str, Any] | None = kept.get("last_exit")
        if kept.get("runs"):
            # The container ended with its worker, such as at an eviction of memory that kills all of its processes.
            self._last_exit = {"with_container": True, "last_lines": [], "note": read_note(self.note_file)}

    def enter(self, state: str, reason: str | None = None) -> None:
        """The pod's state from now on, and what a person should know about it."""
        with self._lock:
            self._state, self._reason = state, reason
        print("quern: %s%s" % (state, "" if reason is None else ": %s" % reason), file=sys.stderr, flush=True)

    def fail(self, error: Exception) -> None:
        """The project cannot be fetched, or its environment cannot be made. It is tried again."""
        with self._lock:
            if self._failure is None:
                self._failing_since = time.monotonic()
            self._failure = describe_failure(error)
        self.enter("failed", str(error))

    def prepared(self) -> None:
        """A worker can start."""
        with self._lock:
            self._failure = None
        self.enter("starting")

    def drain(self) -> None:
        """The pod is about to end: it is not ready any more, whatever its worker says. For signal handlers: no lock."""
        self._is_draining = True

    def started(self, pid: int) -> None:
        """A worker's process runs."""
        with self._lock:
            self._pid = pid
            self._starts += 1
            self._write(True)

    def ended(self, last_exit: dict[str, Any]) -> None:
        """... and is gone."""
        with self._lock:
            self._pid = None
            self._last_exit = last_exit
            self._write(False)

    def signal(self, pid: int, number: int) -> bool:
        """To the worker's process and its forks; false if another process, or none, is the worker now."""
        with self._lock:
            if self._pid != pid:
                return False
            try:
                os.killpg(pid, number)
            except ProcessLookupError:
                return False
            return True

    @property
    def state(self) -> str:
        """One of STATES."""
        return "draining" if self._is_draining else self._state

    def describe(self) -> dict[str, Any]:
        """As JSON values, for the controller."""
        with self._lock:
            return {
                "state": self.state,
                "reason": self._reason,
                "failure": self._failing(),
                "starts": self._starts,
                "pid": self._pid,
                "last_exit": self._last_exit,
                "note": read_note(self.note_file),
            }

    def _failing(self) -> dict[str, Any] | None:
        if self._failure is None:
            return None
        return {**self._failure, "for_s": round(time.monotonic() - self._failing_since, 3)}

    def _read(self) -> dict[str, Any]:
        try:
            with open(self._file) as file:
                kept = json.load(file)
            return kept if isinstance(kept, dict) else {}
        except (OSError, ValueError):
            return {}

    def _write(self, runs: bool) -> None:
        kept = {"starts": self._starts, "last_exit": self._last_exit, "runs": runs}
        try:
            with open(self._file + ".new", "w") as file:
                json.dump(kept, file)
            os.replace(self._file + ".new", self._file)
        except OSError:
            pass
