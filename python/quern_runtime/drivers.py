"""Where a predict() that is not async runs: in the worker's own thread, or in several of its own (async: tasks.py).

`start(unit)` begins one of: a Request, a list of them (a batch), a Stream that has room. The outcome is passed to
`deliver(request, outcome)` in the worker's thread.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from typing import TYPE_CHECKING

from .calls import Request
from .leaving import crash
from .streams import Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from .calls import Calls
    from .shapes import Outcome, Unit

    Deliver = Callable[[Request, Outcome], None]


class Inline:
    """One at a time in the worker's thread, the main one: signals and libraries that want it work."""

    is_async = False
    is_idle = True
    has_room = True

    def __init__(self, calls: Calls, deliver: Deliver, flush: Callable[[], None]) -> None:
        self._calls = calls
        self._deliver = deliver
        self._flush = flush

    def start(self, unit: Unit) -> None:
        perform(self._calls, unit, self._deliver, self._flush)

    def collect(self) -> None:
        pass

    def cancel(self, request: Request) -> None:
        """A call that runs here ends before a cancel can be read."""


class Threads:
    """`threads_per_process` at a time; the worker's thread serves the sockets."""

    is_async = False

    def __init__(self, calls: Calls, deliver: Deliver, count: int, wake: Callable[[], None]) -> None:
        self._calls = calls
        self._deliver = deliver
        self._wake = wake
        self._count = count
        self._running = 0
        self._units: queue.SimpleQueue[Unit] = queue.SimpleQueue()
        # None after the outcomes of a unit.
        self._done: deque[tuple[Request, Outcome] | None] = deque()
        for number in range(count):
            threading.Thread(target=self._run, name="predict-%d" % number, daemon=True).start()

    @property
    def has_room(self) -> bool:
        return self._running < self._count

    @property
    def is_idle(self) -> bool:
        return self._running == 0

    def start(self, unit: Unit) -> None:
        self._running += 1
        self._units.put(unit)

    def collect(self) -> None:
        """The outcomes of calls since the last check, in the worker's thread."""
        while self._done:
            done = self._done.popleft()
            if done is None:
                self._running -= 1
            else:
                self._deliver(*done)

    def cancel(self, request: Request) -> None:
        """Python code in a thread cannot be stopped, so its answer will be dropped."""

    def _run(self) -> None:
        try:
            while True:
                perform(self._calls, self._units.get(), self._hand_over, self._wake)
                self._hand_back()
        except BaseException:
            # The unit in hand is lost, and with it a caller's answer.
            crash()

    def _hand_over(self, request: Request, outcome: Outcome) -> None:
        self._done.append((request, outcome))

    def _hand_back(self) -> None:
        self._done.append(None)
        self._wake()


def perform(calls: Calls, unit: Unit, deliver: Deliver, flush: Callable[[], None]) -> None:
    """One unit, blocking. `flush` sends what came before a slow piece, and an answer before its post_predict()."""
    if type(unit) is Stream:
        if unit.is_slow:
            flush()
        return deliver(unit.request, unit.next())
    requests = [unit] if type(unit) is Request else unit
    outcomes = [calls.call(unit)] if type(unit) is Request else calls.call_many(unit)
    for request, outcome in zip(requests, outcomes):
        deliver(request, outcome.begin() if type(outcome) is Stream else outcome)
    for request in requests:
        if request.after is not None:
            flush()
            calls.run_after(request)
    return None
