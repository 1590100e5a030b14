"""The note of the delivery in hand: a small memory-mapped file that outlives the process.

Written before each predict() at the cost of a fraction of a microsecond, so that after a death exactly the current
batch or request is charged. Layout, little endian: magic u32 | epoch u32 | connection u32 | delivery u32 | batch index
u32 | busy u8 | 3 bytes | since u64. `delivery` stays after predict() returned, and for one connection it never goes
down: all above it were never started. `since` is when user code was last called, in nanoseconds of the monotonic clock:
a gateway kills a replica only if the call that holds it has run too long.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .shapes import DiedIn

MAGIC = 0x314E5451
SIZE = 32
_HEAD = struct.Struct("<II")
_IN_HAND = struct.Struct("<IIIB3xQ")
_BUSY_SINCE = struct.Struct("<B3xQ")
_BUSY_AT = 20


class Note:
    """Opens or creates the note at `path`. `died_in` is the delivery that the previous process had in hand, or None."""

    def __init__(self, path: str) -> None:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(handle, SIZE)
            self._map: mmap.mmap | bytearray = mmap.mmap(handle, SIZE)
        finally:
            os.close(handle)
        self.died_in = self._read()
        self._map[:] = bytes(SIZE)
        self.set_epoch(0)

    def _read(self) -> DiedIn | None:
        magic, epoch = _HEAD.unpack_from(self._map, 0)
        _, delivery, batch_index, busy, _ = _IN_HAND.unpack_from(self._map, 8)
        if magic != MAGIC or not busy:
            return None
        return {"epoch": epoch, "delivery": delivery, "batch_index": batch_index}

    def set_epoch(self, epoch: int) -> None:
        _HEAD.pack_into(self._map, 0, MAGIC, epoch)

    def take_in_hand(self, connection: int, delivery: int, batch_index: int) -> None:
        """Before user code runs: a death from now on is charged to this delivery."""
        _IN_HAND.pack_into(self._map, 8, connection, delivery, batch_index, 1, time.monotonic_ns())

    def continue_earlier(self) -> None:
        """Before user code makes one more piece of a stream: an earlier delivery, which the note need not name."""
        _BUSY_SINCE.pack_into(self._map, _BUSY_AT, 1, time.monotonic_ns())

    def put_down(self) -> None:
        """After user code has returned."""
        self._map[_BUSY_AT] = 0

    def detach(self) -> None:
        """In a forked child: it writes no more notes, because it shares the memory with its parent."""
        self._map = bytearray(SIZE)
