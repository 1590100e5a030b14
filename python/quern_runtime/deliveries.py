"""The batches of a job that were leased to this worker: run one after the other, acknowledged together."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from . import forks, protocol
from .faults import encode, fault
from .forks import leave_if_child
from .http_payload import parse_batch
from .progress import START_AFTER_NS, Progress
from .rows import ValuesError, encode_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from .connection import Connection
    from .load_predictor import Predictor
    from .note import Note
    from .shapes import Fault

# After a predict() of more than this, deliveries that have not started are released.
RELEASE_AFTER_NS = 50_000_000


class Deliveries:
    """The queue of this worker. It has none until `set_up`; a LEASE before that breaks the protocol."""

    def __init__(self, note: Note, flush: Callable[[], None], log_fault: Callable[[Fault, str], None]) -> None:
        self._note = note
        self._flush = flush
        self._log_fault = log_fault
        # (connection, delivery, batch index, payload as JSON, first item of a part or None for a whole batch)
        self._waiting: deque[tuple[Connection, int, int, bytes, int | None]] = deque()
        self._progress: dict[int, Progress] = {}
        self._predictor: Predictor | None = None
        self._job_id: str | None = None
        self._has_output = False
        self._needs_values = False
        # Whether the rows of earlier batches wait until the controller takes them.
        self._is_held = False

    def set_up(self, predictor: Predictor, job_id: str, has_output: bool, needs_values: bool) -> None:
        """`has_output`: what predict() returns is written to the job's output; with `needs_values`, it must be one
        value an item.
        """
        self._predictor = predictor
        self._job_id = job_id
        self._has_output = has_output
        self._needs_values = needs_values

    def drop_predictor(self) -> None:
        """Its job has ended, and another one follows."""
        self._predictor = None

    def __bool__(self) -> bool:
        """Whether a batch can run now. None does while the socket has not taken what earlier ones returned: nothing
        is sent during predict(), so a long one would keep finished batches from the controller.
        """
        return bool(self._waiting) and not self._is_held and not self._waiting[0][0].is_full

    def welcome(self, connection: Connection) -> None:
        self._progress[connection.number] = Progress()

    def forget(self, connection: Connection) -> None:
        self._progress.pop(connection.number, None)
        if self._waiting:
            self._waiting = deque(entry for entry in self._waiting if entry[0] is not connection)

    def take(self, connection: Connection, delivery: int, body: bytes) -> None:
        if self._predictor is None:
            raise protocol.ProtocolError("a LEASE arrived at a worker that has no job")
        for offset, (batch_index, payload) in enumerate(protocol.decode_lease(body)):
            self._waiting.append((connection, delivery + offset, batch_index, payload, None))

    def take_part(self, connection: Connection, delivery: int, body: bytes) -> None:
        """LEASE_PART: some items of a batch that has failed."""
        if self._predictor is None:
            raise protocol.ProtocolError("a LEASE_PART arrived at a worker that has no job")
        batch_index, first_item, payload = protocol.decode_lease_part(body)
        self._waiting.append((connection, delivery, batch_index, payload, first_item))

    def acknowledge(self, connection: Connection) -> None:
        progress = self._progress.get(connection.number)
        if progress is None:
            return
        progress.send(connection)
        self._is_held = progress.is_held

    def grant(self, connection: Connection, message_id: int, body: bytes) -> None:
        """OUTPUT_CREDIT: the rows that wait leave with the next flush."""
        if not self._has_output:
            raise protocol.ProtocolError("an OUTPUT_CREDIT arrived at a worker whose job has no output")
        self._progress[connection.number].grant(protocol.decode_u32(body))

    def run_one(self) -> None:
        """Runs the next batch to its end. Its failure is acknowledged like a success; nothing is raised."""
        connection, delivery, batch_index, raw, first_item = self._waiting.popleft()
        progress = self._progress.get(connection.number)
        if progress is None:
            return
        if progress.last_ns >= START_AFTER_NS:
            connection.send(protocol.START, delivery, b"")
            self._flush()
        self._note.take_in_hand(connection.number, delivery, batch_index)
        started = time.perf_counter_ns()
        stage = "predict"
        try:
            payload = parse_batch(raw)
            # User code may change the list.
            item_count = len(payload) if self._has_output else 0
            batch_id = "%s-%d" % (self._job_id, batch_index)
            if first_item is not None:
                batch_id = "%s-%d-%d" % (batch_id, first_item, first_item + len(payload) - 1)
            # The predictor exists, because `take` refuses an earlier LEASE.
            value = self._predictor.predict_batch(payload, batch_id, self._has_output)  # type: ignore[union-attr]
            if forks.is_child:
                leave_if_child()
            if self._has_output:
                stage = "serialize"
                progress.wrote(*encode_rows(batch_index, first_item or 0, item_count, value, self._needs_values))
            took = time.perf_counter_ns() - started
            progress.succeeded += 1
            progress.success_ns += took
            progress.up_to = delivery
        except BaseException as error:
            leave_if_child(error)
            took = time.perf_counter_ns() - started
            described = fault("values" if isinstance(error, ValuesError) else stage, error)
            self._log_fault(described, "batch %d failed" % batch_index)
            progress.failed(delivery, encode(described))
        self._note.put_down()
        progress.last_ns = took
        if took > RELEASE_AFTER_NS:
            self._release(connection)

    def _release(self, connection: Connection) -> None:
        """Releases deliveries that have not started, so that they wait behind at most one slow batch."""
        mine = [delivery for other, delivery, _, _, _ in self._waiting if other is connection]
        if mine:
            self._waiting = deque(entry for entry in self._waiting if entry[0] is not connection)
            connection.send(protocol.RELEASE, mine[0], protocol.encode_u32(mine[-1]))
