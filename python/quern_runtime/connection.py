"""One caller's socket: frames in, frames out, long bodies split and joined. It never blocks."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from . import protocol
from .log_stream import report

if TYPE_CHECKING:
    import socket

    from .shapes import Meta

# A longer body is not copied behind its head.
JOINED_BYTES_MAX = 8 * 1024
# More pieces than this are copied together: the kernel takes a bounded number at once.
PIECES_MAX = 64


class Connection:
    """The socket of one caller. `number` names it in the note; `role` is None until it has said hello."""

    def __init__(self, sock: socket.socket, number: int) -> None:
        self.sock = sock
        self.number = number
        # `gateway` or `controller`, once it has said hello.
        self.role: str | None = None
        self.epoch = 0
        self.is_open = True
        self._reader = protocol.FrameReader()
        # What came in META, by the id of the PREDICT that follows.
        self.metas: dict[int, Meta] = {}
        # What came in REQUEST_ID, in the same way.
        self.request_ids: dict[int, bytes] = {}
        # Bodies that have begun to come, by id: (type, BytesIO).
        self._parts: dict[int, tuple[int, io.BytesIO]] = {}
        # The highest id of a request of this caller that was begun. Ids that come later may begin earlier.
        self.begun_up_to = 0
        self._outgoing: list[bytes] = []
        # Whether these contain a body that is not copied together with the others.
        self._has_long = False
        self._unsent = b""
        # Long bodies on their way out, by id: [type, body, bytes sent, bytes that the caller has room for].
        self._streams: dict[int, list[Any]] = {}

    def receive(self) -> list[tuple[int, int, bytes]]:
        """Reads what is there; returns complete messages as (type, id, body). Sets is_open to False at the end."""
        try:
            count = self.sock.recv_into(self._reader.space())
        except BlockingIOError:
            return []
        except OSError:
            count = 0
        if not count:
            self.is_open = False
            return []
        messages = []
        for message_type, flags, message_id, body in self._reader.filled(count):
            if message_type in protocol.ORDINARY and message_id and not flags and not self._parts:
                messages.append((message_type, message_id, body))
                continue
            self._check(message_type, flags, message_id, len(body))
            if message_type == protocol.WINDOW:
                self._grant(message_id, protocol.decode_u32(body))
            elif flags & protocol.FLAG_MORE:
                self._keep(message_type, message_id, body)
                self.send(protocol.WINDOW, message_id, protocol.encode_u32(len(body)))
            else:
                messages.append((message_type, message_id, self._whole(message_type, message_id, body)))
        return messages

    def _check(self, message_type: int, flags: int, message_id: int, length: int) -> None:
        protocol.check_frame(message_type, flags, message_id, length)
        if self.role is None and flags:
            raise protocol.ProtocolError("an unauthenticated caller sends a long body")
        known = self._parts.get(message_id) if self._parts else None
        if known is not None and known[0] != message_type and message_type not in protocol.BESIDE_A_BODY:
            raise protocol.ProtocolError(
                "a message of type %d arrived inside the body of message %d" % (message_type, message_id)
            )

    def _keep(self, message_type: int, message_id: int, body: bytes) -> None:
        """A part of a body that more will follow."""
        _, parts = self._parts.setdefault(message_id, (message_type, io.BytesIO()))
        if parts.tell() + len(body) > protocol.MESSAGE_BYTES_MAX:
            raise protocol.ProtocolError(
                "the body of message %d has over %d bytes" % (message_id, protocol.MESSAGE_BYTES_MAX)
            )
        parts.write(body)

    def _whole(self, message_type: int, message_id: int, body: bytes) -> bytes:
        """The body with the parts that came before. BytesIO returns its bytes without a copy, so memory holds them
        once.
        """
        if not self._parts or message_type in protocol.BESIDE_A_BODY or message_id not in self._parts:
            return body
        _, parts = self._parts.pop(message_id)
        parts.write(body)
        return parts.getvalue()

    def send(self, message_type: int, message_id: int, body: bytes) -> None:
        """Queues a message; it leaves with the next flush(). A message that breaks the protocol breaks the connection
        instead.
        """
        if self._streams and message_type != protocol.WINDOW and message_id in self._streams:
            return self.break_off(
                "a message of type %d would overtake the body of message %d" % (message_type, message_id)
            )
        if len(body) <= JOINED_BYTES_MAX:
            self._outgoing.append(protocol.frame(message_type, message_id, body))
        elif len(body) <= protocol.FRAME_BODY_BYTES_MAX:
            self._outgoing += (protocol.frame_head(message_type, message_id, len(body)), body)
            self._has_long = True
        elif message_type not in protocol.MAY_BE_LONG:
            return self.break_off(
                "a message of type %d has %d bytes and must fit into one frame" % (message_type, len(body))
            )
        else:
            self._streams[message_id] = [message_type, body, 0, protocol.STREAM_WINDOW_BYTES]
            self._advance(message_id)
        return None

    def break_off(self, why: str) -> None:
        """Ends this connection, and logs why. The next flush drops it; the caller considers this worker dead."""
        report("closing connection %d, which broke the protocol: %s" % (self.number, why))
        self.is_open = False

    def take_meta(self, message_id: int, body: bytes) -> None:
        """Keeps META for the PREDICT that follows."""
        self.metas[message_id] = json.loads(body)

    def take_request_id(self, message_id: int, body: bytes) -> None:
        """Keeps REQUEST_ID in the same way."""
        self.request_ids[message_id] = body

    def forget(self, message_id: int) -> bool:
        """Nobody waits for this body any more. True if it had not arrived completely."""
        self._streams.pop(message_id, None)
        self.metas.pop(message_id, None)
        self.request_ids.pop(message_id, None)
        return self._parts.pop(message_id, None) is not None

    def _grant(self, message_id: int, count: int) -> None:
        if message_id in self._streams:
            self._streams[message_id][3] += count
            self._advance(message_id)

    def _advance(self, message_id: int) -> None:
        stream = self._streams[message_id]
        message_type, body, sent, credit = stream
        while sent < len(body) and credit > 0:
            end = min(len(body), sent + min(protocol.FRAME_BODY_BYTES_MAX, credit))
            flags = protocol.FLAG_MORE if end < len(body) else 0
            self._outgoing.append(protocol.frame(message_type, message_id, body[sent:end], flags))
            credit -= end - sent
            sent = end
        if sent == len(body):
            del self._streams[message_id]
        else:
            stream[2:] = [sent, credit]

    @property
    def wants_write(self) -> bool:
        return bool(self._unsent) or bool(self._outgoing)

    @property
    def is_full(self) -> bool:
        """Whether the socket took only a part of the last flush."""
        return bool(self._unsent)

    def flush(self) -> None:
        """Sends as much as the socket takes, in one write where possible."""
        pieces = [self._unsent, *self._outgoing] if self._unsent else self._outgoing
        if not pieces or not self.is_open:
            return
        self._outgoing = []
        if len(pieces) > PIECES_MAX or not self._has_long:
            pieces = [b"".join(pieces)]
        self._has_long = False
        try:
            sent = self.sock.sendmsg(pieces)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.is_open = False
            return
        self._unsent = b"" if sent == sum(map(len, pieces)) else b"".join(pieces)[sent:]

    def close(self) -> None:
        """Closes the socket; unsent data is lost."""
        self.is_open = False
        try:
            self.sock.close()
        except OSError:
            pass
