"""What one controller must still hear of its deliveries: rows of the job's output, then the ACKs that count them."""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING

from . import protocol

if TYPE_CHECKING:
    from .connection import Connection

# START goes out before a delivery once the last one took this long.
START_AFTER_NS = 2_000_000
# How many rows a delivery has, and their bytes.
_ROWS = struct.Struct("<II")
_NOTHING = memoryview(b"")


class Progress:
    """Deliveries of one controller that are not yet acknowledged: ACKs of one frame each, in order.

    An ACK leaves after all rows that it counts, so that what is acknowledged has arrived.
    """

    def __init__(self) -> None:
        self.last_ns = START_AFTER_NS
        # Full ACKs, as (up_to, body).
        self._full: list[tuple[int, bytes]] = []
        # The last finished delivery.
        self.up_to = 0
        # Rows that have not left, and how many bytes of them the controller takes.
        self._output: deque[bytes] = deque()
        # What is left of rows that have left in part: a view, because copies would take time quadratic in their length.
        self._rest = _NOTHING
        self._credit = protocol.OUTPUT_WINDOW_BYTES
        self._empty()

    def _empty(self) -> None:
        # The code that runs a batch increments it, because a call for each would cost time.
        self.succeeded = 0
        self.success_ns = 0
        self._sizes: list[bytes] = []
        self._failures: list[tuple[int, bytes]] = []
        self._bytes = 0

    @property
    def is_held(self) -> bool:
        """Whether rows wait for the controller: nothing runs until it has taken them."""
        return bool(self._output) or len(self._rest) > 0

    def wrote(self, rows: int, output: bytes) -> None:
        """The rows of the delivery that has just succeeded."""
        if self._bytes + _ROWS.size > protocol.ACK_PARTS_BYTES_MAX:
            self._close()
        self._sizes.append(_ROWS.pack(rows, len(output)))
        self._bytes += _ROWS.size
        if output:
            self._output.append(output)

    def failed(self, delivery: int, fault: bytes) -> None:
        added = protocol.failure_bytes(fault)
        if self._bytes + added > protocol.ACK_PARTS_BYTES_MAX:
            self._close()
        self._failures.append((delivery, fault))
        self._bytes += added
        self.up_to = delivery

    def grant(self, count: int) -> None:
        """The controller takes `count` more bytes of output."""
        self._credit += count

    def send(self, connection: Connection) -> None:
        """Sends the output as far as the credit goes; if nothing of it is left, also the ACKs."""
        if self.is_held:
            self._send_output(connection)
        if self.is_held:
            return
        if self.succeeded or self._failures:
            self._close()
        for up_to, body in self._full:
            connection.send(protocol.ACK, up_to, body)
        self._full.clear()

    def _send_output(self, connection: Connection) -> None:
        while self.is_held and self._credit > 0:
            if not self._rest:
                self._rest = memoryview(b"".join(self._output))
                self._output.clear()
            count = min(len(self._rest), self._credit)
            for begin in range(0, count, protocol.FRAME_BODY_BYTES_MAX):
                end = min(count, begin + protocol.FRAME_BODY_BYTES_MAX)
                connection.send(protocol.OUTPUT, 0, bytes(self._rest[begin:end]))
            self._credit -= count
            self._rest = self._rest[count:] if count < len(self._rest) else _NOTHING

    def _close(self) -> None:
        body = protocol.encode_ack(self.succeeded, self.success_ns // 1000, self._failures, self._sizes)
        self._full.append((self.up_to, body))
        self._empty()
