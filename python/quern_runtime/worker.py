"""A worker: a thread that listens, calls predict(), and answers. It knows no queue, no bucket and no database.

predict() runs in this thread, the main one, unless the API has several threads; while it runs, nothing is read or
written. Callers allow for that (docs/worker-protocol.md): death is a closed socket, never silence.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from . import protocol
from .connection import Connection
from .deliveries import Deliveries
from .forks import watch_forks
from .hello import refusal
from .late import late
from .lifecycle import Lifecycle, log_fault
from .predictions import Predictions
from .sockets import Sockets

if TYPE_CHECKING:
    from collections.abc import Callable

    from .launcher_link import LauncherLink
    from .listening import Listener
    from .note import Note

    Handler = Callable[[Connection, int, bytes], None]

ORPHAN_EXIT_S = 30
# Everything that a worker with callers has to do begins with a message. Each time it wakes up costs CPU time.
IDLE_POLL_S = 10.0
LEAVING_POLL_S = 1.0
# During work, replies are sent and sockets are checked this often.
FLUSH_NS = 200_000


class Worker:
    """One process with the user's class: the sockets, the predictor, and its pending work."""

    def __init__(self, listener: Listener, note: Note, token: str, launcher: LauncherLink) -> None:
        self._sockets = Sockets(listener, self._dispatch, self._forget)
        self._note = note
        self._token = token
        # INIT and JOB_COMPLETE, as (function, arguments).
        self._tasks: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._predictions = Predictions(note, self._sockets.wake, self._flush, self._ask_for_successor)
        self._deliveries = Deliveries(note, self._flush, log_fault)
        self._life = Lifecycle(note, self._deliveries, self._predictions, launcher)
        self._epoch = 0
        self._draining = False
        of_both: dict[int, Handler] = {
            protocol.META: Connection.take_meta,
            protocol.REQUEST_ID: Connection.take_request_id,
            protocol.PREDICT: self._on_predict,
            protocol.CREDIT: self._on_credit,
            protocol.CANCEL: self._on_cancel,
        }
        of_controllers: dict[int, Handler] = {
            protocol.INIT: self._on_init,
            protocol.LEASE: self._deliveries.take,
            protocol.LEASE_PART: self._deliveries.take_part,
            protocol.DRAIN: self._on_drain,
            protocol.JOB_COMPLETE: self._on_job_complete,
            protocol.ENQUEUED: self._on_enqueued,
            protocol.OUTPUT_CREDIT: self._deliveries.grant,
        }
        self._handlers = {"gateway": of_both, "controller": {**of_both, **of_controllers}}

    def run(self) -> None:
        """Serves until told to drain, or until nobody has been connected for ORPHAN_EXIT_S."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        watch_forks(self._after_fork)
        self._sockets.watch_launcher(self._life.launcher.fileno(), self._on_sigterm)
        while not self._is_over():
            if self._predictions.is_async:
                late("quern_runtime.tasks").run(self._run_async())
                break
            self._sockets.poll(0 if self._tasks or self._deliveries else self._patience())
            self._work()
            self._flush()
        self._flush_last()

    async def _run_async(self) -> None:
        """The same with an event loop, whose tasks the predictions are; the sockets' selector is one of its files."""
        asyncio = late("asyncio")
        loop = asyncio.get_running_loop()
        turned = asyncio.Event()
        self._predictions.on_progress(turned.set)
        loop.add_reader(self._sockets.fileno(), turned.set)
        while not self._is_over():
            self._sockets.poll(0)
            self._work()
            self._flush()
            turned.clear()
            timer = loop.call_later(self._patience(), turned.set)
            await turned.wait()
            timer.cancel()
        loop.remove_reader(self._sockets.fileno())

    def _patience(self) -> float:
        """Seconds until it must look whether it is over, or has work that no message announces."""
        is_leaving = self._draining or self._life.state == "failed" or not self._sockets
        return min(LEAVING_POLL_S if is_leaving else IDLE_POLL_S, self._predictions.patience())

    def _dispatch(self, connection: Connection, message_type: int, message_id: int, body: bytes) -> None:
        if connection.role is None:
            return self._on_hello(connection, message_type, body)
        handler = self._handlers[connection.role].get(message_type)
        if handler is None:
            raise protocol.ProtocolError(
                "a message of type %d came from a %s that said hello" % (message_type, connection.role)
            )
        return handler(connection, message_id, body)

    def _forget(self, connection: Connection) -> None:
        """No caller is left for this work."""
        self._deliveries.forget(connection)
        self._predictions.forget(connection)

    def _flush(self) -> None:
        for connection in self._sockets:
            self._deliveries.acknowledge(connection)
        self._sockets.flush()

    def _flush_last(self) -> None:
        """The last answers leave before the process does: within two seconds; callers that do not read lose them."""
        deadline = time.monotonic() + 2
        self._flush()
        while any(connection.wants_write for connection in self._sockets) and time.monotonic() < deadline:
            self._sockets.poll(0.01)
            self._flush()

    # -- messages --------------------------------------------------------------------------------------------------

    def _on_hello(self, connection: Connection, message_type: int, body: bytes) -> None:
        hello = json.loads(body)
        refused = refusal(message_type, hello, self._token, self._epoch)
        if refused is not None:
            code, reason = refused
            connection.send(protocol.REFUSED, 0, json.dumps({"reason": reason, "code": code}).encode())
            connection.flush()
            connection.is_open = False
            return
        connection.role = hello["role"]
        self._sockets.know(connection)
        if connection.role == "controller":
            self._take_owner(connection, hello["epoch"])
        welcome = {
            "protocol": protocol.PROTOCOL_VERSION,
            "pid": os.getpid(),
            "connection": connection.number,
            "died_in": self._note.died_in,
            **self._life.describe(self._draining),
        }
        connection.send(protocol.WELCOME, 0, json.dumps(welcome).encode())
        left = self._predictions.requests_left
        if left is not None and connection.role == "controller":
            connection.send(protocol.RECYCLE, 0, protocol.encode_u32(left))

    def _take_owner(self, connection: Connection, epoch: int) -> None:
        """The newest epoch owns this worker; the previous owner is disconnected."""
        for other in self._sockets:
            if other is not connection and other.role == "controller":
                self._sockets.drop(other)
        self._epoch = epoch
        self._note.set_epoch(epoch)
        self._deliveries.welcome(connection)

    def _on_init(self, connection: Connection, message_id: int, body: bytes) -> None:
        self._tasks.append((self._life.load, (connection, protocol.decode_init(body))))

    def _on_predict(self, connection: Connection, message_id: int, body: bytes) -> None:
        meta = connection.metas.pop(message_id, None)
        request_id = connection.request_ids.pop(message_id, b"")
        if self._life.state != "ready" or self._draining:
            connection.send(protocol.BUSY, message_id, b"")
        else:
            self._predictions.take(connection, message_id, request_id, meta, body)

    def _on_credit(self, connection: Connection, message_id: int, body: bytes) -> None:
        self._predictions.grant(connection, message_id, protocol.decode_u32(body))

    def _on_cancel(self, connection: Connection, message_id: int, body: bytes) -> None:
        """Always answered, with BUSY if it was not run, because the caller counts outstanding requests."""
        if connection.forget(message_id):
            connection.send(protocol.BUSY, message_id, b"")
        else:
            self._predictions.cancel(connection, message_id)

    def _on_drain(self, connection: Connection, message_id: int, body: bytes) -> None:
        self._draining = True
        self._life.launcher.tell("draining")

    def _on_enqueued(self, connection: Connection, message_id: int, body: bytes) -> None:
        self._life.learn_total(json.loads(body)["total_batch_count"])

    def _on_job_complete(self, connection: Connection, message_id: int, body: bytes) -> None:
        self._tasks.append((self._life.complete_job, (connection, message_id)))

    def _ask_for_successor(self, left: int) -> None:
        """Asks the controller to replace this worker, which goes on until it is told to DRAIN."""
        for connection in self._sockets:
            if connection.role == "controller":
                connection.send(protocol.RECYCLE, 0, protocol.encode_u32(left))

    # -- work ------------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        """Runs pending work for a fraction of a millisecond, or one item that takes longer."""
        until = time.perf_counter_ns() + FLUSH_NS
        while self._tasks or self._deliveries:
            if self._tasks:
                function, arguments = self._tasks.popleft()
                function(*arguments)
            else:
                self._deliveries.run_one()
            if time.perf_counter_ns() >= until:
                return
        self._predictions.work(until)

    # -- the end ---------------------------------------------------------------------------------------------------

    def _is_over(self) -> bool:
        if self._draining or self._life.state == "failed":
            return not self._tasks and self._predictions.is_settled and self._sockets.have_gateways_left()
        if self._sockets:
            # A batch worker without its controller is of no use to anybody.
            return self._life.job_id is not None and not any(c.role == "controller" for c in self._sockets)
        if self._life.job_id is not None:
            return True
        return time.monotonic() - self._sockets.lonely_since > ORPHAN_EXIT_S

    def _on_sigterm(self, *_: object) -> None:
        self._draining = True
        self._sockets.wake()

    def _after_fork(self) -> None:
        """In a forked child: it owns none of the worker's sockets, and no note."""
        self._life.launcher.close()
        self._note.detach()
        self._sockets.close_in_child()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
