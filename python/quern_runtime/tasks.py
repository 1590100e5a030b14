"""Where an async predict() runs: as tasks of an event loop. It has the methods of the drivers in drivers.py."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .calls import BUSY, Request
from .streams import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from .calls import Calls
    from .drivers import Deliver
    from .shapes import Outcome, Unit


def run(main: Coroutine[Any, Any, None]) -> None:
    """Like asyncio.run(), but an exception leaves the loop at once: asyncio.run() would first wait for the threads of
    the executor, and for tasks that ignore that they are cancelled.
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(main)
    loop.run_until_complete(_end_tasks(loop))
    loop.close()


async def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await loop.shutdown_asyncgens()
    await loop.shutdown_default_executor()


class Tasks:
    """As many at a time as `limit`, as tasks of the running event loop; for async predictors."""

    is_async = True

    def __init__(self, calls: Calls, deliver: Deliver, limit: int) -> None:
        self._calls = calls
        self._deliver = deliver
        self._limit = limit
        self._running: set[asyncio.Task[None]] = set()
        # Called when a task has ended or a piece is to go out; set by the owner of the loop.
        self.on_progress: Callable[[], None]

    @property
    def has_room(self) -> bool:
        return len(self._running) < self._limit

    @property
    def is_idle(self) -> bool:
        return not self._running

    def start(self, unit: Unit) -> None:
        task = asyncio.get_running_loop().create_task(
            # Never a Stream, because a task continues its own.
            self._one(unit) if type(unit) is Request else self._many(unit)  # type: ignore[arg-type]
        )
        if type(unit) is Request:
            unit.task = task
        self._running.add(task)
        task.add_done_callback(self._ended)

    def collect(self) -> None:
        pass

    def cancel(self, request: Request) -> None:
        if request.task is not None:
            request.task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self.on_progress()

    async def _one(self, request: Request) -> None:
        try:
            outcome = await self._calls.call_async(request)
        except asyncio.CancelledError:
            outcome = BUSY
        await self._follow(request, outcome)
        await self._after(request)

    async def _many(self, requests: list[Request]) -> None:
        outcomes = await self._calls.call_many_async(requests)
        for request, outcome in zip(requests, outcomes):
            if type(outcome) is Stream:
                outcome = await outcome.begin_async()
            await self._follow(request, outcome)
        for request in requests:
            await self._after(request)

    async def _follow(self, request: Request, outcome: Outcome) -> None:
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

    async def _after(self, request: Request) -> None:
        pending = self._calls.run_after(request)
        if hasattr(pending, "__await__"):
            await self._calls.finish_after(request, pending)
