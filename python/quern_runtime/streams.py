"""An answer in pieces (docs/contract/predictor.md#streams).

A piece is made when the client can take it, so a slow reader pauses the producer.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, final

from . import protocol
from .answers import Streamed, blocking_iterator
from .faults import encode, fault
from .forks import leave_if_child
from .log_stream import report
from .request_names import named

if TYPE_CHECKING:
    from .calls import Request
    from .shapes import Head, Message

SLOW_NS = 100_000


@final
class Stream:
    """`next` makes the next message: CHUNK, END, or ERROR. `credit` is the number of bytes that the caller can take."""

    def __init__(self, request: Request, streamed: Streamed) -> None:
        self.request = request
        self.credit = protocol.STREAM_FIRST_BYTES
        # The rest of the window, until the first CREDIT.
        self._closed = protocol.STREAM_WINDOW_BYTES - protocol.STREAM_FIRST_BYTES
        self.head = json.dumps(streamed.head).encode()
        # A function that is called when more bytes are granted; the owner sets it before the first piece is announced.
        self.proceed: Any = None
        # Set by `begin`.
        self.first: Message
        # Earlier pieces are sent before one that may take long; those of a fast producer leave together.
        self.is_slow = True
        self._pieces: Any = streamed.pieces
        self._encode = streamed.encode

    def grant(self, count: int) -> None:
        """The caller has taken so many bytes. Somebody reads the stream, so its whole window opens."""
        self.credit += count + self._closed
        self._closed = 0

    def begin(self) -> Stream:
        """Makes the first piece, so that an exception before it is an answer with a status of its own."""
        try:
            self._pieces = blocking_iterator(self._pieces)
            self.first = self.next()
        except BaseException as error:
            self.first = self._failed(error)
        self.is_slow = True
        return self

    async def begin_async(self) -> Stream:
        """The same for an async predictor."""
        self.first = await self.next_async()
        return self

    def next(self) -> Message:
        """The next message. An exception of the generator becomes an ERROR; this function raises nothing."""
        started = time.perf_counter_ns()
        try:
            if self.request.is_cancelled:
                self.close()
                return protocol.BUSY, b""
            piece = next(self._pieces)
            leave_if_child()
            piece = self._encode(piece)
            self.is_slow = time.perf_counter_ns() - started > SLOW_NS
            return protocol.CHUNK, piece
        except StopIteration:
            leave_if_child()
            return protocol.END, b""
        except BaseException as error:
            return self._failed(error)

    async def next_async(self) -> Message:
        """The same for an async predictor."""
        try:
            if self.request.is_cancelled:
                await self.close_async()
                return protocol.BUSY, b""
            if hasattr(self._pieces, "__anext__"):
                piece = await self._pieces.__anext__()
            else:
                piece = next(self._pieces)
            leave_if_child()
            return protocol.CHUNK, self._encode(piece)
        except (StopAsyncIteration, StopIteration):
            leave_if_child()
            return protocol.END, b""
        except BaseException as error:
            leave_if_child(error)
            if self.request.is_cancelled:
                await self.close_async()
                return protocol.BUSY, b""
            return self._failed(error)

    def close(self) -> None:
        """The client has left: runs the generator's `finally`."""
        try:
            if hasattr(self._pieces, "close"):
                self._pieces.close()
            leave_if_child()
        except BaseException as error:
            self._log_not_closed(error)

    async def close_async(self) -> None:
        """The same for an async generator."""
        if not hasattr(self._pieces, "aclose"):
            return self.close()
        try:
            await self._pieces.aclose()
            leave_if_child()
        except BaseException as error:
            self._log_not_closed(error)
        return None

    def _failed(self, error: BaseException) -> Message:
        leave_if_child(error)
        described = fault("predict", error)
        report("the stream of %s failed\n%s" % (named((self.request,)), described["traceback"]))
        return protocol.ERROR, encode(described)

    def _log_not_closed(self, error: BaseException) -> None:
        leave_if_child(error)
        described = fault("predict", error)
        report("the generator of %s could not be closed\n%s" % (named((self.request,)), described["traceback"]))


def sliced(head: Head, body: bytes) -> Streamed:
    """A long body as a stream of its slices: other messages pass between them, and for a slow reader the body stays
    here, once.
    """
    view = memoryview(body)
    size = protocol.FRAME_BODY_BYTES_MAX
    pieces = (view[at : at + size] for at in range(0, len(body), size))
    headers = head.get("headers") or [["content-type", "application/json"]]
    headers = [pair for pair in headers if pair[0].lower() != "content-length"] + [["content-length", str(len(body))]]
    return Streamed({**head, "headers": headers, "format": "raw"}, pieces, bytes)
