"""Percent-encoded bytes, decoded in slices: the standard library makes an object of 33 bytes or more of each `%41`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

SLICE_BYTES = 64 * 1024


def unquoted(raw: bytes) -> bytes:
    """The decoded bytes. Invalid codes stay unchanged."""
    if b"%" not in raw:
        return raw
    if len(raw) <= SLICE_BYTES:
        return unquote_to_bytes(raw)
    return b"".join(map(unquote_to_bytes, _slices(raw)))


def _slices(raw: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(raw):
        end = at + SLICE_BYTES
        # `%41` is not cut in two.
        cut = raw.find(b"%", end - 2, end)
        end = end if cut < 0 else cut
        yield raw[at:end]
        at = end
