"""The real-time requests of this worker: taken, waiting, running, answered. All of this runs in the worker's thread."""

from __future__ import annotations

import math
import time
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from . import protocol
from .batching import Batching
from .calls import Calls, Request
from .drivers import Inline, Threads
from .late import late
from .monitoring import Monitor
from .streams import Stream
from .wear import Wear

if TYPE_CHECKING:
    from collections.abc import Callable

    from .connection import Connection
    from .load_predictor import Predictor
    from .note import Note
    from .shapes import Driver, Init, Message, Meta, Outcome, Unit
    from .tasks import Tasks


class Predictions:
    """The requests that this worker has taken, up to its concurrency; a request beyond that is answered BUSY."""

    def __init__(
        self,
        note: Note,
        wake: Callable[[], None],
        flush: Callable[[], None],
        ask_for_successor: Callable[[int], None],
    ) -> None:
        """`wake` ends the worker's wait, from any thread; `flush` sends queued messages; `ask_for_successor` takes how
        many requests of `max_requests` are left.
        """
        self._note = note
        self._wake = wake
        self._flush = flush
        self._ask_for_successor = ask_for_successor
        # None without `max_requests`.
        self._wear: Wear | None = None
        # Waiting and running ones, by (connection, id): their number is what `max_replica_concurrency` bounds.
        self._open: dict[tuple[int, int], Request] = {}
        # Requests that wait, and streams that have room for a piece.
        self._ready: deque[Request | Stream] = deque()
        self._batching: Batching | None = None
        # None until `set_up`.
        self._driver: Driver | None = None
        self._concurrency = 0

    def set_up(self, predictor: Predictor, init: Init) -> None:
        """The predictor is ready: requests are taken from now on."""
        monitoring = init.get("monitoring")
        monitor = Monitor(monitoring["model_type"], monitoring.get("key")) if monitoring else None
        calls = Calls(predictor, monitor, init.get("response", "json"))
        threads = init.get("threads", 1)
        batching = init.get("batching")
        if batching:
            self._batching = Batching(batching["max_batch_size"], batching["interval_ms"] / 1000)
        self._concurrency = init["concurrency"]
        max_requests = init.get("max_requests")
        self._wear = Wear(max_requests, self._ask_for_successor) if max_requests else None
        if predictor.is_async:
            limit = threads if batching else self._concurrency
            self._driver = late("quern_runtime.tasks").Tasks(calls, self._deliver, limit)
        elif threads > 1:
            self._driver = Threads(calls, self._deliver, threads, self._wake)
        else:
            self._driver = Inline(calls, self._deliver, self._flush)

    @property
    def is_async(self) -> bool:
        return self._driver is not None and self._driver.is_async

    def on_progress(self, callback: Callable[[], None]) -> None:
        """For async predictors: called when new work may have become possible."""
        cast("Tasks", self._driver).on_progress = callback

    @property
    def requests_left(self) -> int | None:
        """How many requests were left when a successor was asked for; None if none is needed."""
        return None if self._wear is None else self._wear.asked

    @property
    def is_settled(self) -> bool:
        """Whether no caller waits for anything."""
        return all(request.is_cancelled for request in self._open.values())

    def take(self, connection: Connection, message_id: int, request_id: bytes, meta: Meta | None, body: bytes) -> None:
        """A request comes in. Raises ProtocolError if its id is that of one that is still open."""
        if self._driver is None or len(self._open) >= self._concurrency:
            connection.send(protocol.BUSY, message_id, b"")
            return
        key = (connection.number, message_id)
        if key in self._open:
            raise protocol.ProtocolError("message %d came again before it was answered" % message_id)
        request = self._open[key] = Request(connection, message_id, request_id, meta, body)
        if self._wear is not None:
            self._wear.count()
        if self._batching is None:
            self._ready.append(request)
        else:
            self._batching.add(request, time.monotonic())

    def cancel(self, connection: Connection, message_id: int) -> None:
        """A request that has not begun never begins; a stream or an async call ends; the answer of a blocking call is
        dropped.
        """
        request = self._open.get((connection.number, message_id))
        if request is None or request.is_cancelled or self._driver is None:
            return
        if self._is_waiting(request):
            self._deliver(request, (protocol.BUSY, b""))
            return
        request.is_cancelled = True
        if request.stream is not None and request.stream.credit <= 0:
            request.stream.proceed()
        self._driver.cancel(request)

    def grant(self, connection: Connection, message_id: int, count: int) -> None:
        """The caller grants this many more bytes of a stream."""
        request = self._open.get((connection.number, message_id))
        if request is None or request.stream is None:
            return
        was_parked = request.stream.credit <= 0
        request.stream.grant(count)
        if was_parked and request.stream.credit > 0:
            request.stream.proceed()

    def forget(self, connection: Connection) -> None:
        """The caller is gone, so its requests cannot be answered."""
        for _, message_id in [key for key in self._open if key[0] == connection.number]:
            self.cancel(connection, message_id)

    def patience(self) -> float:
        """Seconds until work is due that no message announces; infinite if there is none."""
        if self._driver is None:
            return math.inf
        if not self._driver.has_room:
            return 1.0
        if self._ready:
            return 0.0
        return max(0.0, self._batching.due_in(time.monotonic())) if self._batching else math.inf

    def work(self, until_ns: int) -> None:
        """Collects the outcomes of threads, and begins as many requests as fit until then (perf_counter_ns)."""
        if self._driver is None:
            return
        self._driver.collect()
        while self._driver.has_room:
            unit = self._next()
            if unit is None:
                return
            self._note_begin(unit)
            self._driver.start(unit)
            if self._driver.is_idle:
                self._note.put_down()
            if time.perf_counter_ns() >= until_ns:
                return

    def _next(self) -> Unit | None:
        if self._ready:
            return self._ready.popleft()
        if self._batching is not None and self._driver is not None:
            return self._batching.take(time.monotonic(), self._driver.is_idle)
        return None

    def _note_begin(self, unit: Unit) -> None:
        """Notes that user code is called, and up to which id requests of a connection may have begun.

        A long body begins later than its id says.
        """
        if type(unit) is Stream:
            self._note.continue_earlier()
            return
        requests = (unit,) if type(unit) is Request else unit
        for request in requests:
            connection = request.connection
            if request.id > connection.begun_up_to:
                connection.begun_up_to = request.id
        self._note.take_in_hand(connection.number, connection.begun_up_to, 0)

    def _is_waiting(self, request: Request) -> bool:
        if self._batching is not None:
            return self._batching.remove(request)
        try:
            self._ready.remove(request)
            return True
        except ValueError:
            return False

    def _deliver(self, request: Request, outcome: Outcome) -> None:
        # None unless the outcome is a piece of one.
        stream: Any = request.stream
        if type(outcome) is Stream:
            outcome = self._open_stream(request, outcome)
            stream = request.stream
        elif request.is_cancelled and stream is None:
            outcome = (protocol.BUSY, b"")
        message_type, body = outcome
        if message_type == protocol.CHUNK and request.is_cancelled:
            # No caller reads it, and its END, which comes next, must not overtake a long body.
            stream.proceed()
            return
        request.connection.send(message_type, request.id, body)
        if message_type != protocol.CHUNK:
            request.stream = None
            self._open.pop((request.connection.number, request.id), None)
            return
        stream.credit -= len(body) + protocol.STREAM_PIECE_BYTES
        if stream.credit > 0:
            stream.proceed()

    def _open_stream(self, request: Request, stream: Stream) -> Message:
        """Announces a stream whose first piece is ready; an ERROR instead is an answer like any other."""
        if stream.first[0] == protocol.ERROR:
            return stream.first
        request.stream = stream
        if stream.proceed is None:
            stream.proceed = lambda: self._ready.append(stream)
        request.connection.send(protocol.STREAM, request.id, stream.head)
        return stream.first
