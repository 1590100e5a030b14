"""One call of predict(): from a request, or a batch of them, to the outcome. It runs in the calling thread."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, final

from . import forks, protocol
from .answer_heads import HeadError
from .answers import NO_HEAD, Streamed, encode_answer, encode_text_answer
from .faults import PayloadError, encode, fault
from .forks import leave_if_child
from .http_payload import parse_payload
from .log_stream import report
from .mappings import argument
from .request_names import named
from .streams import Stream, sliced

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable

    from .connection import Connection
    from .load_predictor import Predictor
    from .monitoring import Monitor
    from .shapes import Arguments, Message, Meta, Outcome

BUSY = (protocol.BUSY, b"")


@final
class Request:
    """One PREDICT in this worker. Its body is released when it has been parsed."""

    __slots__ = ("connection", "id", "request_id", "meta", "body", "is_cancelled", "stream", "task", "after")

    def __init__(
        self, connection: Connection, message_id: int, request_id: bytes, meta: Meta | None, body: bytes
    ) -> None:
        """`request_id`: the caller's X-Request-Id in ASCII, for the log; empty if none came."""
        self.connection = connection
        self.id = message_id
        self.request_id = request_id
        self.meta = meta
        # Empty once it has been parsed.
        self.body = body
        self.is_cancelled = False
        self.stream: Stream | None = None
        # The task of an async predictor.
        self.task: asyncio.Task[None] | None = None
        # The arguments of post_predict().
        self.after: tuple[Any, Arguments] | None = None


class Calls:
    """`call` and its like never raise. An outcome is a message (type, body), or a Stream."""

    def __init__(self, predictor: Predictor, monitor: Monitor | None, response: str) -> None:
        """`response`: `predictor.response` of the configuration, `json` or `text`."""
        self._predictor = predictor
        self._monitor = monitor
        self._encode = encode_text_answer if response == "text" else encode_answer
        self._keeps_arguments = predictor.post_predict is not None

    def call(self, request: Request) -> Outcome:
        """The outcome of one request, in the thread that calls."""
        started = time.perf_counter_ns()
        stage = "payload"
        try:
            arguments = self._arguments(request)
            stage = "predict"
            value = self._predictor.call(arguments)
            if forks.is_child:
                leave_if_child()
            stage = "serialize"
            return self._outcome(request, arguments, value, started)
        except BaseException as error:
            return _failure(stage, error, request)

    async def call_async(self, request: Request) -> Outcome:
        """The same for an async predict()."""
        started = time.perf_counter_ns()
        stage = "payload"
        try:
            arguments = self._arguments(request)
            stage = "predict"
            value = self._predictor.call(arguments)
            if hasattr(value, "__await__"):
                value = await value
            leave_if_child()
            stage = "serialize"
            outcome = self._outcome(request, arguments, value, started)
            return await outcome.begin_async() if type(outcome) is Stream else outcome
        except BaseException as error:
            leave_if_child(error)
            return BUSY if request.is_cancelled else _failure(stage, error, request)

    def call_many(self, requests: list[Request]) -> list[Outcome]:
        """server_side_batching: each parameter of predict() is a list. Outcomes are in the order of the requests."""
        started = time.perf_counter_ns()
        outcomes, given = self._gather(requests)
        try:
            if given:
                values = self._predictor.call(self._columns(given))
                leave_if_child()
                self._spread(given, values, started, outcomes)
        except BaseException as error:
            failed = [request for request, _ in given]
            outcomes.update(dict.fromkeys(failed, _failure("predict", error, *failed)))
        return [outcomes[request] for request in requests]

    async def call_many_async(self, requests: list[Request]) -> list[Outcome]:
        """The same for an async predict()."""
        started = time.perf_counter_ns()
        outcomes, given = self._gather(requests)
        try:
            if given:
                values = self._predictor.call(self._columns(given))
                if hasattr(values, "__await__"):
                    values = await values
                leave_if_child()
                self._spread(given, values, started, outcomes)
        except BaseException as error:
            failed = [request for request, _ in given]
            outcomes.update(dict.fromkeys(failed, _failure("predict", error, *failed)))
        return [outcomes[request] for request in requests]

    def run_after(self, request: Request) -> Any:
        """post_predict(), whose errors the client never sees. Returns what it returned: a coroutine if it is async."""
        after, request.after = request.after, None
        if after is None:
            return None
        try:
            pending = self._predictor.post_predict(*after)  # type: ignore[misc]
            leave_if_child()
            return pending
        except BaseException as error:
            leave_if_child(error)
            return _after_failed(error, request)

    async def finish_after(self, request: Request, pending: Awaitable[object]) -> None:
        """An async post_predict() to its end."""
        try:
            await pending
            leave_if_child()
        except BaseException as error:
            _after_failed(error, request)

    def _arguments(self, request: Request) -> Arguments:
        meta = request.meta
        body, request.body = request.body, b""
        arguments: Arguments = {}
        if self._predictor.takes_payload:
            arguments["payload"] = (
                body
                if self._predictor.takes_body
                else parse_payload(None if meta is None else meta.get("content_type"), body)
            )
        for name in self._predictor.wants:
            # A gateway always sends what READY has named.
            arguments[name] = argument(name, meta or {})
        return arguments

    def _gather(self, requests: list[Request]) -> tuple[dict[Request, Outcome], list[tuple[Request, Arguments]]]:
        """Outcomes of those that have no payload, and (request, arguments) of the others."""
        outcomes: dict[Request, Outcome] = {}
        given: list[tuple[Request, Arguments]] = []
        for request in requests:
            try:
                given.append((request, self._arguments(request)))
            except BaseException as error:
                outcomes[request] = _failure("payload", error, request)
        return outcomes, given

    @staticmethod
    def _columns(given: list[tuple[Request, Arguments]]) -> Arguments:
        return {name: [arguments[name] for _, arguments in given] for name in given[0][1]}

    def _spread(
        self, given: list[tuple[Request, Arguments]], returned: Any, started: int, outcomes: dict[Request, Outcome]
    ) -> None:
        try:
            values = None if isinstance(returned, (str, bytes, dict)) else _list_of(returned)
        except TypeError:
            values = None
        if values is None or len(values) != len(given):
            what = type(returned).__name__ if values is None else "%d values" % len(values)
            raise TypeError(
                "predict() got %d payloads and returned %s; return a list of one value for each" % (len(given), what)
            )
        for (request, arguments), value in zip(given, values):
            if isinstance(value, BaseException):
                outcomes[request] = _failure("predict", value, request)
                continue
            try:
                outcomes[request] = self._outcome(request, arguments, value, started)
            except BaseException as error:
                outcomes[request] = _failure("serialize", error, request)

    def _outcome(self, request: Request, arguments: Arguments, value: Any, started: int) -> Outcome:
        answer = self._encode(value)
        if type(answer) is Streamed:
            return Stream(request, answer)
        head, body = answer
        if self._keeps_arguments:
            request.after = (value, arguments)
        if self._monitor is not None:
            head = json.dumps({**(json.loads(head) if head else {}), **self._monitor.observe(value)}).encode()
        if len(body) > protocol.FRAME_BODY_BYTES_MAX:
            return Stream(request, sliced(json.loads(head) if head else {}, body))
        took_us = (time.perf_counter_ns() - started) // 1000
        return protocol.RESULT, protocol.encode_result(took_us, head or NO_HEAD, body)


def _list_of(values: Any) -> list[Any]:
    """A list from an object with a length. It is iterated once, because it may run user code."""
    len(values)
    return list(values)


def _failure(stage: str, error: BaseException, *requests: Request) -> Message:
    leave_if_child(error)
    described = fault("response" if isinstance(error, HeadError) else stage, error)
    if not isinstance(error, PayloadError):
        report("%s failed\n%s" % (named(requests), described["traceback"]))
    return protocol.ERROR, encode(described)


def _after_failed(error: BaseException, request: Request) -> None:
    leave_if_child(error)
    report("post_predict of %s failed\n%s" % (named((request,)), fault("post_predict", error)["traceback"]))
