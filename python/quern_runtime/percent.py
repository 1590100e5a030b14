"""Percent-encoded bytes, decoded in slices: the standard library makes an object of 33 bytes or more of each `%41`."""

from urllib.parse import unquote_to_bytes

SLICE_BYTES = 64 * 1024


def unquoted(raw):
    """The bytes that are meant. What is no code stays as it is."""
    if b"%" not in raw:
        return raw
    if len(raw) <= SLICE_BYTES:
        return unquote_to_bytes(raw)
    return b"".join(map(unquote_to_bytes, _slices(raw)))


def _slices(raw):
    at = 0
    while at < len(raw):
        end = at + SLICE_BYTES
        # `%41` is not cut in two.
        cut = raw.find(b"%", end - 2, end)
        end = end if cut < 0 else cut
        yield raw[at:end]
        at = end
