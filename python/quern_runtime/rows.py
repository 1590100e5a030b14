"""The rows of a job's output: what predict() returned for a batch, one JSON object a line.

The rules: docs/contract/output.md#rows
"""

from __future__ import annotations

import json
from functools import lru_cache
from itertools import repeat
from typing import TYPE_CHECKING, Any

from .answers import from_numpy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Encode = Callable[[Any, int], Sequence[str]]

# The rows of one batch, in bytes (docs/contract/output.md#rows-limit).
ROWS_BYTES_MAX = 256 * 1024 * 1024


class ValuesError(ValueError):
    """predict() did not return one value an item, which a job with `on_failure: isolate` and an output needs."""


def _plain(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(
            "predict() returned %s, which JSON cannot hold; return a str, such as base64.b64encode(value).decode()"
            % type(value).__name__
        )
    return from_numpy(value)


_STYLE: dict[str, Any] = {"allow_nan": False, "separators": (",", ":"), "default": _plain}


def _encoder(ensure_ascii: bool) -> Encode:
    """A function of a value and 0 to the pieces of its JSON. `JSONEncoder.encode` would build one for each value."""
    encoder = json.JSONEncoder(ensure_ascii=ensure_ascii, **_STYLE)
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return lambda value, level: (encoder.encode(value),)
    text = "encode_basestring_ascii" if ensure_ascii else "encode_basestring"
    return make(None, _plain, getattr(json.encoder, text), None, ":", ",", False, False, False)  # type: ignore[no-any-return]


_encode = _encoder(ensure_ascii=False)
_encode_escaped = _encoder(ensure_ascii=True)


def encode_rows(
    batch_index: int, first_item: int, item_count: int, value: Any, needs_values: bool = False
) -> tuple[int, bytes]:
    """(how many rows, their bytes) of the items from `first_item` on, of which predict() got `item_count`.

    A list, a tuple or an array with one element an item is one row an item. Everything else is one row,
    and with `needs_values` a ValuesError.

    Raises TypeError or ValueError for what JSON cannot hold, such as bytes and NaN, and for too many bytes.
    """
    head = '{"batch_index":%d' % batch_index
    values = _one_an_item(value, item_count)
    if values is None and needs_values:
        raise ValuesError(_not_one_an_item(value, item_count))
    try:
        rows = _text(head, first_item, values, value, _encode).encode()
    except UnicodeEncodeError:
        # Half a surrogate pair: UTF-8 cannot encode it, JSON escapes can.
        rows = _text(head, first_item, values, value, _encode_escaped).encode()
    if len(rows) > ROWS_BYTES_MAX:
        raise ValueError(
            "the predictions of this batch have %d bytes as JSON; the limit is %d: submit the job with fewer items a "
            "batch" % (len(rows), ROWS_BYTES_MAX)
        )
    return 1 if values is None else len(values), rows


def _one_an_item(value: Any, item_count: int) -> list[Any] | None:
    """The prediction of each item; None if predict() returned one for the whole batch."""
    if isinstance(value, (list, tuple)):
        values = list(value)
    elif getattr(value, "shape", ()) and hasattr(value, "tolist"):
        values = from_numpy(value)
    else:
        return None
    return values if len(values) == item_count else None


def _not_one_an_item(value: Any, item_count: int) -> str:
    size = " of %d" % len(value) if isinstance(value, (list, tuple)) else ""
    return (
        "predict() returned %s%s for %d items; with on_failure: isolate and an output, return a list with one value an "
        "item, so that the items beside a guilty one keep their predictions"
    ) % (type(value).__name__, size, item_count)


def _text(head: str, first_item: int, values: list[Any] | None, value: Any, encode: Encode) -> str:
    if values is None:
        return "".join((head, ',"prediction":', *encode(value, 0), "}\n"))
    if not values:
        return ""
    # Loops in C: the encoder's own time is most of it.
    parts = ["}\n" + head] * (3 * len(values))
    parts[0] = head
    parts[1::3] = _item_heads(first_item, len(values))
    parts[2::3] = map("".join, map(encode, values, repeat(0)))
    parts.append("}\n")
    return "".join(parts)


@lru_cache(maxsize=2)
def _item_heads(first: int, count: int) -> list[str]:
    """Kept, because most batches of a job have the same number of items."""
    return [',"item_index":%d,"prediction":' % index for index in range(first, first + count)]
