"""Modules that only some workers need, imported when they need them: asyncio takes a third of a worker's start."""

from __future__ import annotations

import importlib
import sys
import threading
from typing import Any

# As at the start of the process, before the project is on the path.
_PATH = list(sys.path)
_lock = threading.Lock()


def late(name: str) -> Any:
    """The module `name`. No file of the project shadows what it imports, as if it had been imported at the start."""
    known = sys.modules.get(name)
    if known is not None:
        return known
    # The path is that of all threads.
    with _lock:
        path = sys.path[:]
        sys.path[:] = _PATH
        try:
            return importlib.import_module(name)
        finally:
            sys.path[:] = path
