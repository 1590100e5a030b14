"""The pod's health over HTTP, for kubelet and the controller: `/livez`, `/readyz`, and `/worker` with the token. The
controller also ends a worker here.

One thread with its own selector, because anybody in the cluster can connect: a connection is short, one of few, and
has one request.
"""

from __future__ import annotations

import hmac
import json
import selectors
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from .settings import SettingsError

if TYPE_CHECKING:
    from .facts import Facts
    from .settings import Settings

CONNECTIONS_MAX = 64
CONNECTION_S = 5.0
REQUEST_BYTES_MAX = 8 * 1024
NO_TOKEN = "send the pod's token: Authorization: Bearer TOKEN\n"
SIGNALS = {"SIGTERM": signal.SIGTERM, "SIGKILL": signal.SIGKILL}
TITLES = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 503: "Service Unavailable"}


class Health:
    """Listens from the start, so that probes learn why a pod is not ready yet. Raises OSError if it cannot."""

    def __init__(self, settings: Settings, facts: Facts) -> None:
        self._settings = settings
        self._facts = facts
        host = settings.health.host.strip("[]")
        self._listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind((host, settings.health.port))
        self._listener.listen(CONNECTIONS_MAX)
        self._listener.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        # What came, and since when it is open; the oldest first.
        self._open: dict[socket.socket, tuple[bytearray, float]] = {}

    def start(self) -> None:
        """In the background, until the process ends."""
        threading.Thread(target=self._serve, name="health", daemon=True).start()

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select(1.0 if self._open else None):
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    self._read(key.fileobj)  # type: ignore[arg-type]
            before = time.monotonic() - CONNECTION_S
            for sock in [sock for sock, (_, since) in self._open.items() if since < before]:
                self._close(sock)

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        sock.setblocking(False)
        self._open[sock] = (bytearray(), time.monotonic())
        self._selector.register(sock, selectors.EVENT_READ)
        if len(self._open) > CONNECTIONS_MAX:
            self._close(next(iter(self._open)))

    def _read(self, sock: socket.socket) -> None:
        if sock not in self._open:
            return
        request, _ = self._open[sock]
        try:
            data = sock.recv(REQUEST_BYTES_MAX)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        request += data
        if data and b"\r\n\r\n" not in request and len(request) < REQUEST_BYTES_MAX:
            return
        if data:
            try:
                # Shorter than what a kernel takes at once.
                sock.send(self._response(bytes(request)))
            except OSError:
                pass
        self._close(sock)

    def _close(self, sock: socket.socket) -> None:
        del self._open[sock]
        self._selector.unregister(sock)
        sock.close()

    def _response(self, request: bytes) -> bytes:
        status, kind, text = self._answer(request.decode("latin-1"))
        body = text.encode()
        head = "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
        return (head % (status, TITLES[status], kind, len(body))).encode() + (
            b"" if request.startswith(b"HEAD ") else body
        )

    def _answer(self, request: str) -> tuple[int, str, str]:
        """Status, content type and text."""
        first, *lines = request.split("\r\n")
        words = first.split(" ")
        plain = "text/plain; charset=utf-8"
        if len(words) != 3 or words[0] not in ("GET", "HEAD", "DELETE"):
            return 400, plain, "only GET is answered, and DELETE of /worker\n"
        path, _, query = words[1].partition("?")
        if words[0] == "DELETE":
            return self._end_worker(path, query, lines)
        if path == "/livez":
            return 200, plain, "ok\n"
        facts = self._facts.describe()
        if path == "/readyz":
            reason = "" if facts["reason"] is None else ": %s" % facts["reason"]
            return (200, plain, "ok\n") if facts["state"] == "ready" else (503, plain, facts["state"] + reason + "\n")
        if path != "/worker":
            return 404, plain, "there are /livez, /readyz and /worker\n"
        if not self._has_token(lines):
            return 401, plain, NO_TOKEN
        return 200, "application/json", json.dumps(facts)

    def _end_worker(self, path: str, query: str, lines: list[str]) -> tuple[int, str, str]:
        """Sends the signal to the worker's process of this id, if it is the one that runs."""
        if path != "/worker":
            return 404, "text/plain; charset=utf-8", "only /worker can be deleted\n"
        if not self._has_token(lines):
            return 401, "text/plain; charset=utf-8", NO_TOKEN
        asked = {name: values[0] for name, values in parse_qs(query).items()}
        number = SIGNALS.get(asked.get("signal", "SIGKILL"))
        if number is None or not asked.get("pid", "").isdecimal():
            return 400, "text/plain; charset=utf-8", "give pid=N, and signal=SIGTERM or SIGKILL\n"
        was_there = self._facts.signal(int(asked["pid"]), number)
        return 200, "application/json", json.dumps({"signalled": was_there})

    def _has_token(self, lines: list[str]) -> bool:
        try:
            wanted = "Bearer %s" % self._settings.token()
        except SettingsError:
            return False
        given = [value.strip() for name, _, value in (line.partition(":") for line in lines) if _is_key(name)]
        return len(given) == 1 and hmac.compare_digest(given[0].encode(), wanted.encode())


def _is_key(name: str) -> bool:
    return name.strip().lower() == "authorization"
