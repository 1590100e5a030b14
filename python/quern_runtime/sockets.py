"""The worker's sockets: the listener, the connections that it made, and a pipe that wakes the wait from a signal."""

from __future__ import annotations

import math
import os
import selectors
import time
from typing import TYPE_CHECKING

from .strangers import Strangers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .connection import Connection
    from .listening import Listener


# How long a worker that has drained waits for gateways to close their connections.
GATEWAYS_LEAVE_S = 2


class Sockets:
    """Reads only on request, in the caller's thread; it does nothing in the background."""

    def __init__(
        self,
        listener: Listener,
        on_message: Callable[[Connection, int, int, bytes], None],
        on_drop: Callable[[Connection], None],
    ) -> None:
        """`on_message(connection, type, id, body)` for each complete message; `on_drop(connection)` when a connection
        is gone.
        """
        self._listener = listener
        self._on_message = on_message
        self._on_drop = on_drop
        self._selector = selectors.DefaultSelector()
        self._connections: dict[int, Connection] = {}
        self._strangers = Strangers()
        self._connections_made = 0
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        self._is_woken = False
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._has_launcher = False
        self._on_launcher_gone: Callable[[], None] = lambda: None
        # Since when nobody has been connected (monotonic seconds).
        self.lonely_since = time.monotonic()
        # Since when this worker waits for gateways to leave (monotonic seconds); None before.
        self._leaving_since: float | None = None

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._connections.values()))

    def __bool__(self) -> bool:
        """Whether a caller is connected that has said hello."""
        return len(self._connections) > len(self._strangers.silent_since)

    def fileno(self) -> int:
        """Readable when `poll` has something to read."""
        return self._selector.fileno()

    def wake(self) -> None:
        """Ends a wait; may be called from a signal handler and from other threads."""
        if self._is_woken:
            return
        self._is_woken = True
        try:
            os.write(self._wake_write, b"!")
        except BlockingIOError:
            pass

    def poll(self, timeout: float) -> None:
        """Waits up to `timeout` seconds, and handles received messages."""
        strangers = self._strangers
        if strangers.silent_since:
            strangers.begin_turn()
        for key, events in self._selector.select(timeout):
            if key.data is None:
                self._attend(key.fd)
            elif events & selectors.EVENT_READ:
                self._read(key.data)
        if strangers.silent_since:
            for connection in strangers.overdue():
                self.drop(connection)

    def _attend(self, descriptor: int) -> None:
        """What is no connection can be read."""
        if descriptor == self._wake_read:
            os.read(self._wake_read, 4096)
            # Cleared before the caller checks for work, so that later work wakes it again.
            self._is_woken = False
        elif descriptor == self._listener.fileno():
            self._accept()
        else:
            self._selector.unregister(descriptor)
            self._on_launcher_gone()

    def watch_launcher(self, descriptor: int, on_gone: Callable[[], None]) -> None:
        """Calls `on_gone` once the other end of this socket is closed. With a launcher (-1: none) nobody is lonely."""
        self._on_launcher_gone = on_gone
        self._has_launcher = descriptor >= 0
        if self._has_launcher:
            self.lonely_since = math.inf
            self._selector.register(descriptor, selectors.EVENT_READ, None)

    def know(self, connection: Connection) -> None:
        """It has said hello."""
        self._strangers.remove(connection)

    def flush(self) -> None:
        """Sends as much as the peers accept now, and the rest when they accept more."""
        for connection in self:
            if connection.wants_write:
                connection.flush()
                self._watch_writes(connection)
            if not connection.is_open:
                self.drop(connection)

    def drop(self, connection: Connection) -> None:
        """Closes it, and tells `on_drop`; once."""
        if self._connections.pop(connection.number, None) is None:
            return
        self._selector.unregister(connection.sock)
        connection.close()
        self._strangers.remove(connection)
        self._on_drop(connection)
        if connection.role is not None and not self and not self._has_launcher:
            self.lonely_since = time.monotonic()

    def have_gateways_left(self) -> bool:
        """For a worker with nothing left to do that drains. Gateways close their connections when they hear that; until
        then each request is answered BUSY. One that wrote to a closed connection would lose the answers that it has not
        read yet.
        """
        now = time.monotonic()
        self._leaving_since = self._leaving_since or now
        is_late = now - self._leaving_since > GATEWAYS_LEAVE_S
        return is_late or not any(connection.role == "gateway" for connection in self)

    def close_in_child(self) -> None:
        """A child of user code: none of these is its own."""
        self._listener.close()
        for connection in self:
            connection.close()
        self._selector.close()
        os.close(self._wake_read)
        os.close(self._wake_write)
        # The descriptors may belong to other files now, so nothing wakes a child.
        self._is_woken = True

    def _accept(self) -> None:
        self._connections_made += 1
        connection = self._listener.accept(self._connections_made)
        if connection is None:
            return
        self._connections[connection.number] = connection
        self._selector.register(connection.sock, selectors.EVENT_READ, connection)
        surplus = self._strangers.add(connection)
        if surplus is not None:
            self.drop(surplus)

    def _read(self, connection: Connection) -> None:
        # It may have been dropped in this turn.
        if connection.role is None and not (connection.is_open and self._strangers.may_read(connection)):
            return
        try:
            for message_type, message_id, body in connection.receive():
                self._on_message(connection, message_type, message_id, body)
        except Exception as error:
            # Whatever a peer sends affects only its own connection; no user code runs here.
            connection.break_off("%s: %s" % (type(error).__name__, error))
        if not connection.is_open:
            self.drop(connection)

    def _watch_writes(self, connection: Connection) -> None:
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.wants_write else 0)
        if connection.is_open and self._selector.get_key(connection.sock).events != wanted:
            self._selector.modify(connection.sock, wanted, connection)
