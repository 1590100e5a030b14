"""Where callers connect to: a Unix socket, TCP on loopback, or TLS. Each accepted socket becomes a Connection."""

from __future__ import annotations

import socket

from .connection import Connection
from .late import late

# A peer whose machine is gone is noticed after about 20 s: its kernel answers, however busy the process is.
KEEP_ALIVE = (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 20_000))
LOOPBACK = ("localhost", "::1")
# Callers that wait while predict() runs.
BACKLOG = 128


class Listener:
    """A listening socket, readable when a caller waits."""

    def __init__(self, sock: socket.socket) -> None:
        sock.listen(BACKLOG)
        sock.setblocking(False)
        self._socket = sock

    def fileno(self) -> int:
        """For a selector."""
        return self._socket.fileno()

    def close(self) -> None:
        """Accepts nobody any more."""
        self._socket.close()

    def accept(self, number: int) -> Connection | None:
        """A connection for a waiting caller, or None when it has left again."""
        try:
            sock, _ = self._socket.accept()
        except OSError:
            return None
        sock.setblocking(False)
        if sock.family != getattr(socket, "AF_UNIX", None):
            _watch_peer(sock)
        return self.connection(sock, number)

    def connection(self, sock: socket.socket, number: int) -> Connection:
        """What an accepted socket becomes."""
        return Connection(sock, number)


def listen(address: str, certificate: str | None = None, key: str | None = None) -> Listener:
    """Listens at `unix:PATH`, `tcp:HOST:PORT` (loopback only) or `tls:HOST:PORT` (with the files of a certificate and
    its key, in PEM). Raises OSError if the address is not available or the files cannot be used, ValueError if it may
    not be.
    """
    kind, _, rest = address.partition(":")
    if kind == "unix":
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.bind(rest)
        return Listener(sock)
    host, _, port = rest.rpartition(":")
    host = host.strip("[]")
    if kind == "tcp":
        if not (host in LOOPBACK or host.startswith("127.")):
            raise ValueError("tcp: is for loopback only, because it is not encrypted; use tls:%s" % rest)
        return Listener(_bound(host, int(port)))
    if kind != "tls":
        raise ValueError("%r is not unix:PATH, tcp:HOST:PORT or tls:HOST:PORT" % address)
    if certificate is None or key is None:
        raise ValueError("tls: needs --certificate FILE and --key FILE")
    # The module takes a tenth of a worker's start, and only pods need it.
    tls = late("quern_runtime.tls")
    context = tls.RenewedContext(certificate, key)
    listener: Listener = tls.TlsListener(_bound(host, int(port)), context)
    return listener


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((host, port))
    return sock


def _watch_peer(sock: socket.socket) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE:
        # Systems other than Linux lack some.
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
