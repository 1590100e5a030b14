"""A worker: one thread that listens, calls predict(), and answers. It knows no queue, no bucket and no database.

predict() runs in this thread, the main one, so that signals and asyncio work in user code; while it runs, nothing is
read or written. Callers allow for that (docs/worker-protocol.md): death is a closed socket, never silence.
"""

import atexit
import hmac
import os
import signal
import sys
import time
from collections import deque

from . import protocol
from .http_payload import PayloadError, encode_fault, encode_prediction, fault, parse_batch, parse_payload
from .load_predictor import PredictorError, load_predictor
from .log_stream import close_standard_streams
from .sockets import Sockets

ORPHAN_EXIT_S = 30
# While work goes on, replies leave and sockets are looked at this often.
FLUSH_NS = 200_000
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


class Worker:
    def __init__(self, listener, note, token):
        self._sockets = Sockets(listener, self._dispatch, self._forget)
        self._note = note
        self._token = token
        self._tasks = deque()
        self._progress = {}
        self._predictions_waiting = 0
        self._epoch = 0
        self._state = "new"
        self._api_id = None
        self._job_id = None
        self._init = None
        self._predictor = None
        self._draining = False
        self._forked = False
        self._handlers = {
            protocol.INIT: self._on_init,
            protocol.PREDICT: self._on_predict,
            protocol.LEASE: self._on_lease,
            protocol.CANCEL: self._on_cancel,
            protocol.DRAIN: self._on_drain,
            protocol.JOB_COMPLETE: self._on_job_complete,
        }

    def run(self):
        """Serves until told to drain, or until nobody has been connected for ORPHAN_EXIT_S."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.register_at_fork(after_in_child=self._after_fork)
        while not self._is_over():
            self._sockets.poll(0 if self._tasks else 1)
            self._work()
            self._flush()
        self._flush_last()

    def _dispatch(self, connection, message_type, message_id, body):
        if connection.role is None:
            self._on_hello(connection, message_type, body)
        elif message_type in self._handlers:
            self._handlers[message_type](connection, message_id, body)

    def _forget(self, connection):
        """Nobody is left to whom this work could be answered."""
        self._progress.pop(connection.number, None)
        gone = [task for task in self._tasks if task[1] is connection]
        if gone:
            self._predictions_waiting -= sum(1 for task in gone if task[0] == protocol.PREDICT)
            self._tasks = deque(task for task in self._tasks if task[1] is not connection)

    def _flush(self):
        for connection in self._sockets:
            progress = self._progress.get(connection.number)
            ack = progress.take_ack() if progress is not None else None
            if ack is not None:
                connection.send(protocol.ACK, *ack)
        self._sockets.flush()

    def _flush_last(self):
        """The last answers leave before the process does: within two seconds, whoever does not read loses them."""
        deadline = time.monotonic() + 2
        while any(connection.wants_write for connection in self._sockets) and time.monotonic() < deadline:
            self._sockets.poll(0.01)
            self._flush()

    # -- messages --------------------------------------------------------------------------------------------------

    def _on_hello(self, connection, message_type, body):
        hello = protocol.json.loads(body)
        reason = self._refusal(message_type, hello)
        if reason is not None:
            connection.send(protocol.REFUSED, 0, protocol.json.dumps({"reason": reason}).encode())
            connection.flush()
            connection.is_open = False
            return
        connection.role = hello["role"]
        if connection.role == "controller":
            self._take_owner(connection, hello["epoch"])
        welcome = {
            "protocol": protocol.PROTOCOL_VERSION,
            "pid": os.getpid(),
            "state": self._state,
            "api_id": self._api_id,
            "connection": connection.number,
            "wants": self._predictor.wants if self._predictor is not None else [],
            "died_in": self._note.died_in,
        }
        connection.send(protocol.WELCOME, 0, protocol.json.dumps(welcome).encode())

    def _refusal(self, message_type, hello):
        if message_type != protocol.HELLO or hello.get("protocol") != protocol.PROTOCOL_VERSION:
            return "protocol %s is not spoken here, only %d" % (hello.get("protocol"), protocol.PROTOCOL_VERSION)
        if not hmac.compare_digest(str(hello.get("token", "")).encode(), self._token.encode()):
            return "wrong token"
        if hello["role"] == "controller" and hello["epoch"] < self._epoch:
            return "epoch %d is over; the owner's is %d" % (hello["epoch"], self._epoch)
        return None

    def _take_owner(self, connection, epoch):
        """The newest epoch owns this worker; the owner before it is cut off."""
        for other in self._sockets:
            if other is not connection and other.role == "controller":
                self._sockets.drop(other)
        self._epoch = epoch
        self._note.set_epoch(epoch)
        self._progress[connection.number] = Progress()

    def _on_init(self, connection, message_id, body):
        self._tasks.append((protocol.INIT, connection, message_id, protocol.json.loads(body)))

    def _on_predict(self, connection, message_id, body):
        if self._state != "ready" or self._draining or self._predictions_waiting >= self._init["concurrency"]:
            connection.send(protocol.BUSY, message_id, b"")
            return
        self._predictions_waiting += 1
        self._tasks.append((protocol.PREDICT, connection, message_id, body))

    def _on_lease(self, connection, message_id, body):
        for offset, (batch_index, payload) in enumerate(protocol.decode_lease(body)):
            self._tasks.append((protocol.LEASE, connection, message_id + offset, (batch_index, payload)))

    def _on_cancel(self, connection, message_id, body):
        """What has not begun never will: BUSY says so, because the caller counts what is outstanding here."""
        if connection.forget(message_id):
            connection.send(protocol.BUSY, message_id, b"")
            return
        for task in self._tasks:
            if task[0] == protocol.PREDICT and task[1] is connection and task[2] == message_id:
                self._tasks.remove(task)
                self._predictions_waiting -= 1
                connection.send(protocol.BUSY, message_id, b"")
                return

    def _on_drain(self, connection, message_id, body):
        self._draining = True

    def _on_job_complete(self, connection, message_id, body):
        self._tasks.append((protocol.JOB_COMPLETE, connection, message_id, protocol.json.loads(body)))

    # -- work ------------------------------------------------------------------------------------------------------

    def _work(self):
        """Runs tasks for about a millisecond, or one that takes longer."""
        until = time.perf_counter_ns() + FLUSH_NS
        while self._tasks:
            task_type, connection, message_id, content = self._tasks.popleft()
            if task_type == protocol.LEASE:
                self._run_delivery(connection, message_id, *content)
            elif task_type == protocol.PREDICT:
                self._run_prediction(connection, message_id, content)
            elif task_type == protocol.INIT:
                self._run_init(connection, content)
            else:
                self._run_job_complete(connection, message_id)
            if self._forked:
                # User code forked and its child came back out of predict(): the child must not answer for us.
                os._exit(0)
            if time.perf_counter_ns() >= until:
                return

    def _run_init(self, connection, init):
        self._state = "initializing"
        self._init = init
        self._api_id = init["api_id"]
        self._job_id = (init.get("job_spec") or {}).get("job_id")
        try:
            self._predictor = load_predictor(init)
        except BaseException as error:
            self._state = "failed"
            self._draining = True
            stage = error.stage if isinstance(error, PredictorError) else "init"
            described = fault(stage, error)
            print(described["traceback"], end="", file=sys.stderr)
            connection.send(protocol.INIT_FAILED, 0, protocol.json.dumps(described).encode())
            return
        self._state = "ready"
        ready = {"wants": self._predictor.wants, "has_on_job_complete": self._predictor.on_job_complete is not None}
        connection.send(protocol.READY, 0, protocol.json.dumps(ready).encode())

    def _run_prediction(self, connection, message_id, body):
        self._predictions_waiting -= 1
        self._note.take_in_hand(connection.number, message_id, 0)
        started = time.perf_counter_ns()
        stage = "payload"
        try:
            meta, raw = protocol.decode_predict(body)
            payload = parse_payload(raw) if self._predictor.takes_payload else None
            stage = "predict"
            if meta is None:
                prediction = self._predictor.predict(payload)
            else:
                prediction = self._predictor.predict(payload, meta.get("query_params"), meta.get("headers"))
            stage = "serialize"
            encoded = encode_prediction(prediction)
            took_us = (time.perf_counter_ns() - started) // 1000
            connection.send(protocol.RESULT, message_id, protocol.encode_result(took_us, encoded))
        except BaseException as error:
            if not isinstance(error, PayloadError):
                self._log_fault(fault(stage, error), "request failed")
            connection.send(protocol.ERROR, message_id, encode_fault(stage, error))
        self._note.put_down()

    def _run_delivery(self, connection, delivery, batch_index, raw):
        progress = self._progress.get(connection.number)
        if progress is None:
            return
        if progress.last_ns >= START_AFTER_NS:
            connection.send(protocol.START, delivery, b"")
            self._flush()
        self._note.take_in_hand(connection.number, delivery, batch_index)
        started = time.perf_counter_ns()
        try:
            self._predictor.predict(parse_batch(raw), batch_id="%s-%d" % (self._job_id, batch_index))
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
        mine = [task[2] for task in self._tasks if task[0] == protocol.LEASE and task[1] is connection]
        if mine:
            self._tasks = deque(t for t in self._tasks if not (t[0] == protocol.LEASE and t[1] is connection))
            connection.send(protocol.RELEASE, mine[0], protocol.encode_u32(mine[-1]))

    def _run_job_complete(self, connection, message_id):
        self._note.take_in_hand(connection.number, message_id, 0)
        try:
            if self._predictor.on_job_complete is not None:
                self._predictor.on_job_complete()
            connection.send(protocol.RESULT, message_id, protocol.encode_result(0, b"null"))
        except BaseException as error:
            self._log_fault(fault("on_job_complete", error), "on_job_complete failed")
            connection.send(protocol.ERROR, message_id, encode_fault("on_job_complete", error))
        self._note.put_down()

    def _log_fault(self, described, what):
        print("%s\n%s" % (what, described["traceback"]), end="", file=sys.stderr)

    # -- the end ---------------------------------------------------------------------------------------------------

    def _is_over(self):
        if self._draining:
            return not any(task[0] != protocol.LEASE for task in self._tasks)
        if self._sockets:
            # A batch worker without its controller is of no use to anybody.
            return self._job_id is not None and not any(c.role == "controller" for c in self._sockets)
        if self._job_id is not None:
            return True
        return time.monotonic() - self._sockets.lonely_since > ORPHAN_EXIT_S

    def _on_sigterm(self, signum, stack):
        self._draining = True
        self._sockets.wake()

    def _after_fork(self):
        """A child of user code: none of our sockets is its own."""
        self._forked = True
        self._sockets.close_in_child()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)


def leave(code):
    """Ends the process without waiting for threads that user code left behind."""
    try:
        atexit._run_exitfuncs()
        close_standard_streams()
    finally:
        os._exit(code)
