"""Reads the note of the batch or request in hand (python/quern_runtime/note.py writes it, and has the layout)."""

from __future__ import annotations

import struct
import time
from typing import Any

MAGIC = 0x314E5451
_NOTE = struct.Struct("<IIIIIB3xQ")


def read_note(path: str) -> dict[str, Any] | None:
    """None if there is none, or if the process ended before it made one. `runs_ms` is for how long user code runs."""
    try:
        with open(path, "rb") as file:
            magic, epoch, connection, delivery, batch_index, busy, since = _NOTE.unpack(file.read(_NOTE.size))
    except (OSError, struct.error):
        return None
    if magic != MAGIC:
        return None
    return {
        "epoch": epoch,
        "connection": connection,
        "delivery": delivery,
        "batch_index": batch_index,
        "busy": bool(busy),
        "runs_ms": (time.monotonic_ns() - since) // 1_000_000 if busy else 0,
    }
