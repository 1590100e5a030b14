"""server_side_batching: decides when waiting requests become one batch. Pure: the caller gives the time, in seconds."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .calls import Request


class Batching:
    """A batch leaves when it is full, or when its oldest request has waited `interval_s`.

    A single request on an idle worker leaves at once: it gains nothing by waiting.
    """

    def __init__(self, max_size: int, interval_s: float) -> None:
        self.max_size = max_size
        self._interval_s = interval_s
        self._waiting: deque[tuple[float, Request]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, request: Request, now: float) -> None:
        self._waiting.append((now, request))

    def remove(self, request: Request) -> bool:
        """False when it is not waiting."""
        for entry in self._waiting:
            if entry[1] is request:
                self._waiting.remove(entry)
                return True
        return False

    def take(self, now: float, is_idle: bool) -> list[Request] | None:
        """The next batch as a list, or None while it has to wait."""
        waiting = len(self._waiting)
        if waiting == 0:
            return None
        if waiting < self.max_size and not (is_idle and waiting == 1) and self.due_in(now) > 0:
            return None
        return [self._waiting.popleft()[1] for _ in range(min(waiting, self.max_size))]

    def due_in(self, now: float) -> float:
        """Seconds until the oldest has waited long enough; infinite if none waits."""
        return self._waiting[0][0] + self._interval_s - now if self._waiting else math.inf
