"""The user's class in this process: loaded once (INIT), and called once more when its job ends (JOB_COMPLETE)."""

from __future__ import annotations

import faulthandler
import gc
import json
from typing import TYPE_CHECKING, Any

from . import protocol
from .faults import FAULT_MESSAGE_BYTES_MAX, cut, encode, fault
from .forks import leave_if_child
from .load_predictor import PredictorError, load_class, make_predictor
from .log_stream import log_to, report
from .missing_module import advice
from .process_state import ProcessState

if TYPE_CHECKING:
    from .connection import Connection
    from .deliveries import Deliveries
    from .launcher_link import LauncherLink
    from .load_predictor import Predictor
    from .note import Note
    from .predictions import Predictions
    from .shapes import Fault, Init

DROP_SECONDS_MAX = 5


class Lifecycle:
    """From "new" to "initializing" to "ready", or to "failed" if the class cannot be loaded."""

    def __init__(self, note: Note, deliveries: Deliveries, predictions: Predictions, launcher: LauncherLink) -> None:
        self.launcher = launcher
        self._note = note
        self._deliveries = deliveries
        self._predictions = predictions
        self.state = "new"
        self.api_id: str | None = None
        # None for a replica of a real-time API.
        self.job_id: str | None = None
        self.predictor: Predictor | None = None
        self._class: Any = None
        # With the class loaded, before the first object of it.
        self._before_jobs: ProcessState

    def load(self, connection: Connection, init: Init) -> None:
        """Loads the class and makes the predictor; answers READY or INIT_FAILED. A process that has worked for another
        job has the class already: the new job gets a new predictor.
        """
        init = self.launcher.locate(init)
        self.state = "initializing"
        self.launcher.tell(self.state)
        self.api_id = init["api_id"]
        self.job_id = (init.get("job_spec") or {}).get("job_id")
        if "log_file" in init:
            log_to(init["log_file"])
        try:
            self._drop_predictor()
            if self._class is None:
                self._class = load_class(init)
                if init.get("may_be_reused", False):
                    self._before_jobs = ProcessState()
                    _freeze()
            else:
                self._before_jobs.restore()
            predictor = make_predictor(self._class, init)
            leave_if_child()
        except BaseException as error:
            leave_if_child(error)
            self.state = "failed"
            described = _describe(error)
            self.launcher.tell(self.state, described)
            connection.send(protocol.INIT_FAILED, 0, encode(described))
            return
        self.predictor = predictor
        if self.job_id is not None:
            self._deliveries.set_up(
                predictor, self.job_id, init.get("has_output", False), init.get("needs_value_per_item", False)
            )
        else:
            self._predictions.set_up(predictor, init)
        # The predictor of a job does not stay if others follow.
        if not init.get("may_be_reused", False):
            _freeze()
        self.state = "ready"
        ready = {
            "wants": predictor.wants,
            "is_async": predictor.is_async,
            "has_on_job_complete": predictor.on_job_complete is not None,
        }
        self.launcher.tell(self.state)
        connection.send(protocol.READY, 0, json.dumps(ready).encode())

    def _drop_predictor(self) -> None:
        """The former job's: its memory is free before the next one is made, also if it refers to itself. Its `__del__`
        may hang, in C code too: the process ends then, and says in the job's log where.
        """
        if self.predictor is None:
            return
        faulthandler.dump_traceback_later(DROP_SECONDS_MAX, exit=True, file=2)
        self.predictor.close()
        self.predictor = None
        self._deliveries.drop_predictor()
        gc.collect()
        faulthandler.cancel_dump_traceback_later()

    def describe(self, is_draining: bool) -> dict[str, object]:
        """What a WELCOME says about the class."""
        predictor = self.predictor
        return {
            "state": "draining" if is_draining else self.state,
            "api_id": self.api_id,
            "wants": predictor.wants if predictor is not None else [],
            "is_async": predictor is not None and predictor.is_async,
        }

    def learn_total(self, total_batch_count: int) -> None:
        """Tells the predictor how many batches its job has, once all are enqueued."""
        if self.job_id is None or self.predictor is None:
            raise protocol.ProtocolError("an ENQUEUED arrived at a worker that has no job")
        self.predictor.learn_total(total_batch_count)

    def complete_job(self, connection: Connection, message_id: int) -> None:
        """Runs `on_job_complete()`; answers RESULT or ERROR."""
        self._note.take_in_hand(connection.number, message_id, 0)
        try:
            self.predictor.complete_job()  # type: ignore[union-attr]
            leave_if_child()
            connection.send(protocol.RESULT, message_id, protocol.encode_result(0, b"", b"null"))
        except BaseException as error:
            leave_if_child(error)
            described = fault("on_job_complete", error)
            log_fault(described, "on_job_complete failed")
            connection.send(protocol.ERROR, message_id, encode(described))
        self._note.put_down()


def _freeze() -> None:
    """What was loaded stays in memory: the collector need not walk through it with every request, or between jobs."""
    gc.collect()
    gc.freeze()


def log_fault(described: Fault, what: str) -> None:
    """Writes an exception of user code to the log of its API or job."""
    report("%s\n%s" % (what, described["traceback"]))


def _describe(error: BaseException) -> Fault:
    """The reason why the class cannot be loaded, with a cure; the same goes to the log."""
    stage = error.stage if isinstance(error, PredictorError) else "init"
    described = fault(stage, error)
    what_to_do = advice(error)
    report(described["traceback"] + ("" if what_to_do is None else "%s\n" % what_to_do))
    if what_to_do is not None:
        described["message"] = cut("%s: %s" % (described["message"], what_to_do), FAULT_MESSAGE_BYTES_MAX)
    return described
