"""The batches of a job that were leased to this worker: run one after the other, acknowledged together."""

import time
from collections import deque

from . import protocol
from .faults import encode_fault, fault
from .http_payload import parse_batch

# START goes out before a delivery once the last one took this long.
START_AFTER_NS = 2_000_000
# After a predict() of over this, what has not been started is given back.
RELEASE_AFTER_NS = 50_000_000


class Progress:
    """What is not yet acknowledged of one controller's deliveries."""

    def __init__(self):
        self.up_to = 0
        self.succeeded = 0
        self.success_ns = 0
        self.failures = []
        self.last_ns = START_AFTER_NS

    def take_ack(self):
        """(up_to, body) of the next ACK, or None."""
        if not self.succeeded and not self.failures:
            return None
        body = protocol.encode_ack(self.succeeded, self.success_ns // 1000, self.failures)
        self.succeeded, self.success_ns, self.failures = 0, 0, []
        return self.up_to, body


class Deliveries:
    def __init__(self, note, flush, log_fault):
        self._note = note
        self._flush = flush
        self._log_fault = log_fault
        self._waiting = deque()
        self._progress = {}
        self._predictor = None
        self._job_id = None

    def set_up(self, predictor, job_id):
        self._predictor = predictor
        self._job_id = job_id

    def __bool__(self):
        return bool(self._waiting)

    def welcome(self, connection):
        self._progress[connection.number] = Progress()

    def forget(self, connection):
        self._progress.pop(connection.number, None)
        if self._waiting:
            self._waiting = deque(entry for entry in self._waiting if entry[0] is not connection)



    def take(self, connection, delivery, body):
        for offset, (batch_index, payload) in enumerate(protocol.decode_lease(body)):
            self._waiting.append((connection, delivery + offset, batch_index, payload))

    def acknowledge(self, connection):
        progress = self._progress.get(connection.number)
        ack = progress.take_ack() if progress is not None else None
        if ack is not None:
            connection.send(protocol.ACK, *ack)

    def run_one(self):
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
            self._predictor.predict_batch(parse_batch(raw), "%s-%d" % (self._job_id, batch_index))
            took = time.perf_counter_ns() - started
            progress.succeeded += 1
            progress.success_ns += took
        except BaseException as error:
            took = time.perf_counter_ns() - started
            self._log_fault(fault("predict", error), "batch %d failed" % batch_index)
            progress.failures.append((delivery, encode_fault("predict", error)))
        self._note.put_down()
        progress.up_to = delivery
        progress.last_ns = took
        if took > RELEASE_AFTER_NS:
            self._release(connection)

    def _release(self, connection):
        """Gives back what was not started, so that it waits behind at most one slow batch."""
        mine = [delivery for other, delivery, _, _ in self._waiting if other is connection]
        if mine:
            self._waiting = deque(entry for entry in self._waiting if entry[0] is not connection)
            connection.send(protocol.RELEASE, mine[0], protocol.encode_u32(mine[-1]))
