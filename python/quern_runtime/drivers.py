"""Where predict() runs: in the worker's own thread, in several of its own, or as tasks of an event loop.

`start(unit)` begins one of: a Request, a list of them (a batch), a Stream that has room. What comes of it is handed to
`deliver(request, outcome)` in the worker's thread.
"""

import asyncio
import queue
import threading
from collections import deque

from .calls import BUSY, Request
from .streams import Stream


class Inline:
    """One at a time in the worker's thread, the main one: signals and libraries that want it work."""

    is_async = False
    is_idle = True
    has_room = True

    def __init__(self, calls, deliver, flush):
        self._calls = calls
        self._deliver = deliver
        self._flush = flush

    def start(self, unit):
        perform(self._calls, unit, self._deliver, self._flush)

    def collect(self):
        pass

    def cancel(self, request):
        """A call that runs here has ended before anybody can cancel it."""


class Threads:
    """`threads_per_process` at a time; the worker's thread keeps the sockets."""

    is_async = False

    def __init__(self, calls, deliver, count, wake):
        self._calls = calls
        self._deliver = deliver
        self._wake = wake
        self._count = count
        self._running = 0
        self._units = queue.SimpleQueue()
        self._done = deque()
        for number in range(count):
            threading.Thread(target=self._run, name="predict-%d" % number, daemon=True).start()

    @property
    def has_room(self):
        return self._running < self._count

    @property
    def is_idle(self):
        return self._running == 0

    def start(self, unit):
        self._running += 1
        self._units.put(unit)

    def collect(self):
        """What has come of calls since the last look, in the worker's thread."""
        while self._done:
            done = self._done.popleft()
            if done is None:
                self._running -= 1
            else:
                self._deliver(*done)

    def cancel(self, request):
        """Python code in a thread cannot be stopped: its answer will be dropped."""

    def _run(self):
        while True:
            perform(self._calls, self._units.get(), self._hand_over, self._wake)
            self._hand_back()

    def _hand_over(self, request, outcome):
        self._done.append((request, outcome))

    def _hand_back(self):
        self._done.append(None)
        self._wake()


def perform(calls, unit, deliver, flush):
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


class Tasks:
    """As many at a time as `limit`, as tasks of the running event loop; for async predictors."""

    is_async = True

    def __init__(self, calls, deliver, limit):
        self._calls = calls
        self._deliver = deliver
        self._limit = limit
        self._running = set()
        # Called when a task has ended or a piece is to go out; set by whoever runs the loop.
        self.on_progress = None

    @property
    def has_room(self):
        return len(self._running) < self._limit

    @property
    def is_idle(self):
        return not self._running

    def start(self, unit):
        task = asyncio.get_running_loop().create_task(self._one(unit) if type(unit) is Request else self._many(unit))
        if type(unit) is Request:
            unit.task = task
        self._running.add(task)
        task.add_done_callback(self._ended)

    def collect(self):
        pass

    def cancel(self, request):
        if request.task is not None:
            request.task.cancel()

    def _ended(self, task):
        self._running.discard(task)
        self.on_progress()

    async def _one(self, request):
        try:
            outcome = await self._calls.call_async(request)
        except asyncio.CancelledError:
            outcome = BUSY
        await self._follow(request, outcome)
        await self._after(request)

    async def _many(self, requests):
        outcomes = await self._calls.call_many_async(requests)
        for request, outcome in zip(requests, outcomes):
            if type(outcome) is Stream:
                outcome = await outcome.begin_async()
            await self._follow(request, outcome)
        for request in requests:
            await self._after(request)

    async def _follow(self, request, outcome):
        """Delivers the outcome; of a stream, piece after piece as there is room."""
        if type(outcome) is not Stream:
            return self._deliver(request, outcome)
        room = asyncio.Event()
        outcome.proceed = room.set
        self._deliver(request, outcome)
        while request.stream is not None:
            self.on_progress()
            try:
                await room.wait()
                room.clear()
                message = await outcome.next_async()
            except asyncio.CancelledError:
                await outcome.close_async()
                message = BUSY
            self._deliver(request, message)
        return None

    async def _after(self, request):
        pending = self._calls.run_after(request)
        if hasattr(pending, "__await__"):
            await self._calls.finish_after(pending)
