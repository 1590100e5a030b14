"""One call of predict(): from a request, or a batch of them, to what goes back. In whichever thread it is called."""

import json
import time

from . import forks, protocol
from .answer_heads import HeadError
from .answers import NO_HEAD, Streamed, encode_answer, encode_text_answer
from .faults import PayloadError, encode, fault
from .forks import leave_if_child
from .http_payload import parse_payload
from .log_stream import report
from .mappings import argument
from .streams import Stream, sliced

BUSY = (protocol.BUSY, b"")


class Request:
    """One PREDICT on its way through this worker. Its body is let go of when it has been parsed."""

    __slots__ = ("connection", "id", "meta", "body", "is_cancelled", "stream", "task", "after")

    def __init__(self, connection, message_id, meta, body):
        self.connection = connection
        self.id = message_id
        self.meta = meta
        self.body = body
        self.is_cancelled = False
        self.stream = None
        # Of an async predictor.
        self.task = None
        # The arguments of post_predict().
        self.after = None


class Calls:
    """`call` and its like never raise: an outcome is a message (type, body), or a Stream that has given its first piece."""

    def __init__(self, predictor, monitor, response):
        """`response`: `predictor.response` of the configuration, `json` or `text`."""
        self._predictor = predictor
        self._monitor = monitor
        self._encode = encode_text_answer if response == "text" else encode_answer
        self._keeps_arguments = predictor.post_predict is not None

    def call(self, request):
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
            return _failure(stage, error)

    async def call_async(self, request):
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
            return BUSY if request.is_cancelled else _failure(stage, error)

    def call_many(self, requests):
        """server_side_batching: each parameter of predict() is a list; the outcomes are in the order of the requests."""
        started = time.perf_counter_ns()
        outcomes, given = self._gather(requests)
        try:
            if given:
                values = self._predictor.call(self._columns(given))
                leave_if_child()
                self._spread(given, values, started, outcomes)
        except BaseException as error:
            outcomes.update(dict.fromkeys((request for request, _ in given), _failure("predict", error)))
        return [outcomes[request] for request in requests]

    async def call_many_async(self, requests):
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
            outcomes.update(dict.fromkeys((request for request, _ in given), _failure("predict", error)))
        return [outcomes[request] for request in requests]

    def run_after(self, request):
        """post_predict(), whose errors the client never sees."""
        after, request.after = request.after, None
        if after is None:
            return None
        try:
            pending = self._predictor.post_predict(*after)
            leave_if_child()
            return pending
        except BaseException as error:
            leave_if_child(error)
            return _after_failed(error)

    async def finish_after(self, pending):
        """An async post_predict() to its end."""
        try:
            await pending
            leave_if_child()
        except BaseException as error:
            _after_failed(error)

    def _arguments(self, request):
        meta = request.meta
        body, request.body = request.body, None
        arguments = {}
        if self._predictor.takes_payload:
            arguments["payload"] = body if self._predictor.takes_body else parse_payload(meta and meta.get("content_type"), body)
        for name in self._predictor.wants:
            arguments[name] = argument(name, meta) if meta is not None else None
        return arguments

    def _gather(self, requests):
        """Outcomes of those that have no payload, and (request, arguments) of the others."""
        outcomes, given = {}, []
        for request in requests:
            try:
                given.append((request, self._arguments(request)))
            except BaseException as error:
                outcomes[request] = _failure("payload", error)
        return outcomes, given

    @staticmethod
    def _columns(given):
        return {name: [arguments[name] for _, arguments in given] for name in given[0][1]}

    def _spread(self, given, returned, started, outcomes):
        try:
            values = None if isinstance(returned, (str, bytes, dict)) else _list_of(returned)
        except TypeError:
            values = None
        if values is None or len(values) != len(given):
            what = type(returned).__name__ if values is None else "%d values" % len(values)
            raise TypeError("predict() got %d payloads and returned %s; return a list of one value for each" % (len(given), what))
        for (request, arguments), value in zip(given, values):
            if isinstance(value, BaseException):
                outcomes[request] = _failure("predict", value)
                continue
            try:
                outcomes[request] = self._outcome(request, arguments, value, started)
            except BaseException as error:
                outcomes[request] = _failure("serialize", error)

    def _outcome(self, request, arguments, value, started):
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


def _list_of(values):
    """What has a length, as a list: iterated once, because user code may be behind it."""
    len(values)
    return list(values)


def _failure(stage, error):
    leave_if_child(error)
    described = fault("response" if isinstance(error, HeadError) else stage, error)
    if not isinstance(error, PayloadError):
        report("request failed\n%s" % described["traceback"])
    return protocol.ERROR, encode(described)


def _after_failed(error):
    leave_if_child(error)
    report("post_predict failed\n%s" % fault("post_predict", error)["traceback"])
