"""Computed results by content id: a directory for each resource, with a state that says whether it is complete.

A state is written completely and made durable before the next step begins. After a kill, the next run resumes after the
last step that succeeded.
"""

from __future__ import annotations

import json
import os
from datetime import datetime, timezone
from typing import Any

REASON_CHARACTERS_MAX = 8192


class Artifacts:
    """The directory of one application."""

    def __init__(self, root: str) -> None:
        self._root = root

    def path(self, resource_id: str, *names: str) -> str:
        return os.path.join(self._root, resource_id, *names)

    def is_done(self, resource_id: str) -> bool:
        state = self._read(resource_id)
        return state is not None and state["state"] == "succeeded"

    def begin(self, resource_id: str) -> None:
        os.makedirs(self.path(resource_id), exist_ok=True)
        self._write(resource_id, {"state": "running", "started_time": _now()})

    def succeed(self, resource_id: str) -> None:
        # A state that survives a power failure must not name files that do not.
        sync_tree(self.path(resource_id))
        self._end(resource_id, {"state": "succeeded"})

    def fail(self, resource_id: str, reason: str) -> None:
        """Keeps the beginning of a long reason: the server reads it whenever somebody asks for the state."""
        if len(reason) > REASON_CHARACTERS_MAX:
            reason = reason[:REASON_CHARACTERS_MAX] + " ..."
        self._end(resource_id, {"state": "failed", "reason": reason})

    def write_value(self, resource_id: str, value: Any) -> None:
        """An aggregate's value. Keys of JSON are text, so their types are stored beside it.

        Raises TypeError or ValueError for a value that JSON cannot hold; numpy's are converted.
        """
        has_int_keys = isinstance(value, dict) and all(isinstance(key, int) for key in value)
        content = {"value": value, **({"keys": "int"} if has_int_keys else {})}
        write_durably(self.path(resource_id, "value.json"), json.dumps(content, default=_from_numpy).encode())

    def read_value(self, resource_id: str) -> Any:
        """The value as it was written. Raises FileNotFoundError if there is none."""
        with open(self.path(resource_id, "value.json"), encoding="utf-8") as file:
            content = json.load(file)
        value = content["value"]
        return {int(key): each for key, each in value.items()} if content.get("keys") == "int" else value

    def _end(self, resource_id: str, state: dict[str, str]) -> None:
        before = self._read(resource_id) or {"started_time": _now()}
        self._write(resource_id, {"started_time": before["started_time"], **state, "ended_time": _now()})

    def _read(self, resource_id: str) -> dict[str, str] | None:
        try:
            with open(self.path(resource_id, "state.json"), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return None

    def _write(self, resource_id: str, state: dict[str, str]) -> None:
        write_durably(self.path(resource_id, "state.json"), json.dumps(state).encode())


def write_durably(path: str, content: bytes) -> None:
    """Writes all or nothing, even if the machine loses power meanwhile."""
    temporary = path + ".new"
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    _sync(os.path.dirname(path))


def sync_tree(directory: str) -> None:
    """Syncs all files and directories under it to the disk."""
    for parent, _, files in os.walk(directory):
        for name in files:
            _sync(os.path.join(parent, name))
        _sync(parent)


def _sync(path: str) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        # A dangling link, or a socket that a training left.
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def _from_numpy(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError("a value of the type %s cannot be kept" % type(value).__name__)


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f+00:00")
