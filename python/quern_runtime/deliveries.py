"""The batches of a job that were leased to this worker: run one after the other, acknowledged together."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from . import forks, protocol
from .faults import encode, fault
from .forks import leave_if_child
from .http_payload import parse_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from .connection import Connection
    from .load_predictor import Predictor
    from .note import Note
    from .shapes import Fault

# START goes out before a delivery once the last one took this long.
START_AFTER_NS = 2_000_000
# After a predict() of more than this, deliveries that have not started are released.
RELEASE_AFTER_NS = 50_000_000


class Progress:
    """Deliveries of one controller that are not yet acknowledged: ACKs of one frame each, in order."""

    def __init__(self) -> None:
        self.last_ns = START_AFTER_NS
        # Full ACKs, as (up_to, body).
        self._full: list[tuple[int, bytes]] = []
        # The last finished delivery.
        self.up_to = 0
        self._empty()

    def _empty(self) -> None:
        # The code that runs a batch increments it, because a call for each would cost time.
        self.succeeded = 0
        self.success_ns = 0
        self._failures: list[tuple[int, bytes]] = []
        self._bytes = 0

    def failed(self, delivery: int, fault: bytes) -> None:
        added = protocol.failure_bytes(fault)
        if self._bytes + added > protocol.ACK_FAILURES_BYTES_MAX:
            self._close()
        self._failures.append((delivery, fault))
        self._bytes += added
        self.up_to = delivery

    def take_acks(self) -> list[tuple[int, bytes]]:
        """(up_to, body) of each ACK, in order."""
        if self.succeeded or self._failures:
            self._close()
        acks, self._full = self._full, []
        return acks

    def _close(self) -> None:
        body = protocol.encode_ack(self.succeeded, self.success_ns // 1000, self._failures)
        self._full.append((self.up_to, body))
        self._empty()


class Deliveries:
    """The queue of this worker. It has none until `set_up`; a LEASE before that breaks the protocol."""

    def __init__(self, note: Note, flush: Callable[[], None], log_fault: Callable[[Fault, str], None]) -> None:
        self._note = note
        self._flush = flush
        self._log_fault = log_fault
        # (connection, delivery, batch index, payload as JSON)
        self._waiting: deque[tuple[Connection, int, int, bytes]] = deque()
        self._progress: dict[int, Progress] = {}
        self._predictor: Predictor | None = None
        self._job_id: str | None = None

    def set_up(self, predictor: Predictor, job_id: str) -> None:
        self._predictor = predictor
        self._job_id = job_id

    def __bool__(self) -> bool:
        return bool(self._waiting)

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
            self._waiting.append((connection, delivery + offset, batch_index, payload))

    def acknowledge(self, connection: Connection) -> None:
        progress = self._progress.get(connection.number)
        if progress is None:
            return
        for up_to, body in progress.take_acks():
            connection.send(protocol.ACK, up_to, body)

    def run_one(self) -> None:
        """Runs the next batch to its end. Its failure is acknowledged like a success; nothing is raised."""
        connection, delivery, batch_index, raw = self._waiting.popleft()
        progress = self._progress.get(connection.number)
        if progress is None:
            return
        if progress.last_ns >= START_AFTER_NS:
            connection.send(protocol.START, delivery, b"")
            self._flush()
        self._note.take_in_hand(connection.number, delivery, batch_index)
        started = time.perf_counter_ns()
        try:
            # The predictor exists, because `take` refuses an earlier LEASE.
            self._predictor.predict_batch(  # type: ignore[union-attr]
                parse_batch(raw), "%s-%d" % (self._job_id, batch_index)
            )
            if forks.is_child:
                leave_if_child()
            took = time.perf_counter_ns() - started
            progress.succeeded += 1
            progress.success_ns += took
            progress.up_to = delivery
        except BaseException as error:
            leave_if_child(error)
            took = time.perf_counter_ns() - started
            described = fault("predict", error)
            self._log_fault(described, "batch %d failed" % batch_index)
            progress.failed(delivery, encode(described))
        self._note.put_down()
        progress.last_ns = took
        if took > RELEASE_AFTER_NS:
            self._release(connection)

    def _release(self, connection: Connection) -> None:
        """Releases deliveries that have not started, so that they wait behind at most one slow batch."""
        mine = [delivery for other, delivery, _, _ in self._waiting if other is connection]
        if mine:
            self._waiting = deque(entry for entry in self._waiting if entry[0] is not connection)
            connection.send(protocol.RELEASE, mine[0], protocol.encode_u32(mine[-1]))
