"""TLS 1.3 below the frames, for workers that are reached over a network (docs/worker-protocol.md#tls).

The socket stays ours: ciphertext is read and written in large pieces, and OpenSSL works in memory. So a read of many
small records takes one system call instead of two for each, and nothing here ever waits for a peer.
"""

from __future__ import annotations

import os
import ssl
from typing import TYPE_CHECKING, cast

from .connection import Connection
from .listening import Listener
from .log_stream import report

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

# With what is left of a record (16 KiB), this fits into the space that FrameReader always has (256 KiB).
READ_BYTES = 192 * 1024


class RenewedContext:
    """The certificate and the key, read again once their files have changed. Files that cannot be used change nothing:
    the former certificate stays, and the log says why.
    """

    def __init__(self, certificate: str, key: str) -> None:
        self._files = (certificate, key)
        self._seen = self._look()
        self._context = self._load()

    def current(self) -> ssl.SSLContext:
        """For the next connection."""
        seen = self._look()
        if seen != self._seen:
            self._seen = seen
            try:
                self._context = self._load()
            except (OSError, ValueError) as error:
                report("the certificate in %s cannot be used, the former one stays: %s" % (self._files[0], error))
        return self._context

    def _look(self) -> list[tuple[int, int, int] | None]:
        return [_version_of(file) for file in self._files]

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        # Callers stay connected, so that nobody resumes a session.
        context.num_tickets = 0
        context.load_cert_chain(*self._files)
        return context


def _version_of(file: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(file)
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_size)


class TlsListener(Listener):
    """A listening socket whose connections are encrypted."""

    def __init__(self, sock: socket.socket, context: RenewedContext) -> None:
        super().__init__(sock)
        self._context = context
        self._buffer = memoryview(bytearray(READ_BYTES))

    def connection(self, sock: socket.socket, number: int) -> Connection:
        """What an accepted socket becomes; its handshake comes with its first reads."""
        return TlsConnection(TlsSocket(sock, self._context.current(), self._buffer), number)


class TlsSocket:
    """What a Connection needs of a socket that does not block. `buffer` is memory for one read, shared by all."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, buffer: memoryview) -> None:
        self._socket = sock
        self._buffer = buffer
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._is_shaken = False
        # Ciphertext that the kernel did not take yet.
        self._unsent = memoryview(b"")

    def fileno(self) -> int:
        """For a selector."""
        return self._socket.fileno()

    def close(self) -> None:
        """Without a farewell: the end of the socket says it, and a forked child must not say it."""
        self._socket.close()

    @property
    def has_unsent(self) -> bool:
        """Whether it accepted bytes that are not sent yet."""
        return bool(self._unsent)

    def recv_into(self, space: memoryview) -> int:
        """Reads what is there. Raises BlockingIOError if that is no whole record yet, OSError if it is no TLS."""
        count = self._socket.recv_into(self._buffer)
        if not count:
            return 0
        self._incoming.write(self._buffer[:count])
        try:
            return self._decrypt(space) if self._is_shaken or self._shake() else self._nothing()
        finally:
            # The handshake, an alert, or the answer to a change of keys.
            if self._outgoing.pending:
                self.flush()

    def _nothing(self) -> int:
        raise BlockingIOError

    def _shake(self) -> bool:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        self._is_shaken = True
        return True

    def _decrypt(self, space: memoryview) -> int:
        total = 0
        while self._incoming.pending:
            try:
                # Into memory that is given, it returns how many bytes it read.
                total += cast("int", self._tls.read(len(space) - total, cast("bytearray", space[total:])))
            except ssl.SSLWantReadError:
                break
            except ssl.SSLZeroReturnError:
                # The farewell: the end of the socket follows.
                break
        return total or self._nothing()

    def sendmsg(self, pieces: Sequence[bytes]) -> int:
        """Takes all pieces, or raises BlockingIOError while earlier ones are not sent."""
        if self._unsent:
            self.flush()
            if self._unsent:
                raise BlockingIOError
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._tls.write(data)
        self.flush()
        return len(data)

    def flush(self) -> None:
        """Sends as much as the kernel takes. Raises OSError if the peer is gone."""
        if self._outgoing.pending:
            new = self._outgoing.read()
            self._unsent = memoryview(bytes(self._unsent) + new if self._unsent else new)
        try:
            while self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except BlockingIOError:
            pass


class TlsConnection(Connection):
    """A connection whose socket may hold bytes that it accepted."""

    sock: TlsSocket  # type: ignore[assignment]

    def __init__(self, sock: TlsSocket, number: int) -> None:
        super().__init__(sock, number)  # type: ignore[arg-type]

    @property
    def wants_write(self) -> bool:
        """Whether a flush has something to send."""
        return self.sock.has_unsent or super().wants_write

    @property
    def is_full(self) -> bool:
        """Whether the socket took only a part of the last flush."""
        return self.sock.has_unsent or super().is_full

    def flush(self) -> None:
        """Sends as much as the socket takes."""
        if self.sock.has_unsent and self.is_open:
            try:
                self.sock.flush()
            except OSError:
                self.is_open = False
                return
        super().flush()
