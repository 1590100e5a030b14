"""Locks between the pods that share a volume. The kernel ends them with their process."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def building(path: str, on_wait: Callable[[], None]) -> Iterator[None]:
    """Only one process at a time makes `path`. `on_wait` is called if another one does."""
    handle = os.open(path + ".lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
