"""The socket to the launcher of a pod (python/quern_launcher), which hears in which state the worker is, as lines of
JSON. A worker without a launcher has none.
"""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .shapes import Fault, Init


class LauncherLink:
    """`descriptor` is one end of a pair of Unix sockets; None without a launcher. `project` is where it has put the
    project: the controller does not know the pod's directories.
    """

    def __init__(self, descriptor: int | None = None, project: str | None = None) -> None:
        self._project = project
        self._socket = None if descriptor is None else socket.socket(fileno=descriptor)
        if self._socket is not None:
            self._socket.setblocking(False)
            # Programs that user code starts do not get it.
            self._socket.set_inheritable(False)

    def __bool__(self) -> bool:
        """Whether a launcher watches over this worker. It ends it, and starts it again."""
        return self._socket is not None

    def fileno(self) -> int:
        """Readable once the launcher is gone: it never sends anything."""
        return -1 if self._socket is None else self._socket.fileno()

    def locate(self, init: Init) -> Init:
        """INIT with the project's directory in this pod."""
        return init if self._project is None else {**init, "project": self._project}

    def tell(self, state: str, fault: Fault | None = None) -> None:
        """A launcher that is gone, or does not read, hears nothing."""
        if self._socket is None:
            return
        line: dict[str, object] = {"state": state}
        if fault is not None:
            line["fault"] = fault
        try:
            self._socket.send(json.dumps(line).encode() + b"\n")
        except OSError:
            pass

    def close(self) -> None:
        """In a forked child, or once the launcher is gone. From now on the worker is like one without a launcher."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
