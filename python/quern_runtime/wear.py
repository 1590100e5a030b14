"""Counts the requests of a replica towards `predictor.max_requests`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# The start of the process. A worker that was forked later sets it.
born = time.monotonic()
# A successor is asked for as early as this worker took to start, twice, and so many seconds more: its process, and the
# connections to it.
_LEAD = 2
_LEAD_MORE_S = 0.3


class Wear:
    """Asks for a successor: first so early that it is ready in time, at the rate at which requests come; and once more
    when none of `max_requests` is left. The worker goes on until it is told to drain.
    """

    def __init__(
        self, max_requests: int, ask: Callable[[int], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`ask` takes how many requests are left; `clock` is in seconds. The worker is ready now."""
        self._ask = ask
        self._clock = clock
        self._lead_s = _LEAD * (clock() - born) + _LEAD_MORE_S
        # How many were left when a successor was asked for; None before.
        self.asked: int | None = None
        self._left = max_requests
        # When and with how many left it looked last, and with how many left it looks next.
        self._looked = (clock(), max_requests)
        self._look_at = max_requests - max(1, max_requests // 64)

    def count(self) -> None:
        """One more request has been taken."""
        self._left -= 1
        if self._left <= self._look_at:
            self._look()

    def _look(self) -> None:
        left, now = self._left, self._clock()
        then, before = self._looked
        needed = (before - left) / max(now - then, 1e-6) * self._lead_s
        self._looked = (now, left)
        if left <= needed or left == 0:
            self.asked = left
            # Nobody can ask for more than one successor: from now on only the last request matters.
            self._look_at = 0 if left > 0 else -1 << 62
            self._ask(left)
        else:
            self._look_at = min(left - 1, max(0, int((left + needed) / 2)))
