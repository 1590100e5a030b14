"""Connections that have not said hello yet. They cost little, and they do not stay: a worker on a network meets more
than its callers. Time during which the worker did not read them is not theirs (see Sockets.poll).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .connection import Connection

# A caller says hello within milliseconds of the worker's reading it.
HELLO_S = 10.0
STRANGERS_MAX = 64
# A handshake takes under a millisecond. The others of a turn come in the next one, after what callers want.
READ_A_TURN = 4


class Strangers:
    """Who they are, the one that has been silent for the longest first."""

    def __init__(self) -> None:
        # Since when (monotonic seconds).
        self.silent_since: dict[Connection, float] = {}
        # Read since `begin_turn`.
        self._read = 0

    def add(self, connection: Connection) -> Connection | None:
        """Returns the one that must go, if they are too many now."""
        self.silent_since[connection] = time.monotonic()
        return next(iter(self.silent_since)) if len(self.silent_since) > STRANGERS_MAX else None

    def remove(self, connection: Connection) -> None:
        """It has said hello, or is gone."""
        self.silent_since.pop(connection, None)

    def begin_turn(self) -> None:
        """Before the worker reads."""
        self._read = 0

    def may_read(self, connection: Connection) -> bool:
        """Whether this one may be read in this turn. What it sends counts as progress."""
        if self._read >= READ_A_TURN:
            return False
        self._read += 1
        del self.silent_since[connection]
        self.silent_since[connection] = time.monotonic()
        return True

    def overdue(self) -> list[Connection]:
        """Those that were silent for too long. Nobody is while some are read: others may have sent something, too."""
        if self._read or not self.silent_since:
            return []
        before = time.monotonic() - HELLO_S
        return [connection for connection, since in self.silent_since.items() if since < before]
