"""The transformers that come with Quern, each one class: over all rows as SQL, for a sample in Python, and backwards.

Both ways are compared on the first rows of every application's data before anything is trained (`sanity_check` in
transform.py).
"""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING, Any

from .sql import number, text

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from .shapes import Args, Inputs, Sample


class Normalize:
    """(num - mean) / stddev. Raises ValueError if `stddev` is 0."""

    @staticmethod
    def sql(connection: DuckDBPyConnection, columns: Inputs, args: Args) -> str:
        _assert_spread(args)
        return "(CAST(%s AS DOUBLE) - %s) / %s" % (
            columns["num"],
            number(float(args["mean"])),
            number(float(args["stddev"])),
        )

    @staticmethod
    def transform(sample: Sample, args: Args) -> Any:
        _assert_spread(args)
        return (sample["num"] - args["mean"]) / args["stddev"]

    @staticmethod
    def reverse(value: Any, args: Args) -> Any:
        return args["mean"] + value * args["stddev"]


class IndexString:
    """The position of a text in `index`, from 0. Raises ValueError (duckdb.Error over rows) if it is not there."""

    @staticmethod
    def sql(connection: DuckDBPyConnection, columns: Inputs, args: Args) -> str:
        """By an ENUM: a hash table, where looking through a list would take as long as the list is."""
        values = ", ".join(text(value) for value in args["index"])
        kind = "index_%s" % hashlib.sha256(values.encode()).hexdigest()[:16]
        connection.execute("CREATE TYPE IF NOT EXISTS %s AS ENUM (%s)" % (kind, values))
        unknown = "error(concat('\"', {0}, '\" is not in the index'))"
        expression = "CASE WHEN {0} IS NOT NULL THEN coalesce(enum_code(TRY_CAST({0} AS {1})), " + unknown + ") END"
        return expression.format(columns["text"], kind)

    @staticmethod
    def transform(sample: Sample, args: Args) -> Any:
        try:
            return args["index"].index(sample["text"])
        except ValueError:
            raise ValueError('"%s" is not in the index' % sample["text"]) from None

    @staticmethod
    def reverse(value: Any, args: Args) -> Any:
        return args["index"][value]


class Bucketize:
    """The number of the bucket, from 0: its upper boundary is the first that is greater.

    Raises ValueError (duckdb.Error over rows) beyond the last boundary.
    """

    @staticmethod
    def sql(connection: DuckDBPyConnection, columns: Inputs, args: Args) -> str:
        x = "CAST(%s AS DOUBLE)" % columns["num"]
        bounds = enumerate(args["bucket_boundaries"][1:])
        cases = " ".join("WHEN %s < %s THEN %d" % (x, number(float(bound)), at) for at, bound in bounds)
        return "CASE WHEN {0} IS NULL THEN NULL {1} ELSE error(concat({0}, ' is beyond the last boundary')) END".format(
            x, cases
        )

    @staticmethod
    def transform(sample: Sample, args: Args) -> Any:
        for at, bound in enumerate(args["bucket_boundaries"][1:]):
            if sample["num"] < bound:
                return at
        raise ValueError("%s is beyond the last boundary" % sample["num"])


TRANSFORMERS: dict[str, Any] = {"normalize": Normalize, "index_string": IndexString, "bucketize": Bucketize}


def to_column(value: Any, column_type: str) -> Any:
    """A value as a column of this type holds it: floats have 32 bits, in training as in serving.

    Raises ValueError for a number that 32 bits cannot hold.
    """
    if value is None:
        return None
    if column_type == "FLOAT_COLUMN":
        return _float32(value)
    if column_type == "FLOAT_LIST_COLUMN":
        return [_float32(each) for each in value]
    return value


def _float32(value: float) -> float:
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        raise ValueError("%s does not fit into the 32 bits of a FLOAT_COLUMN" % value) from None


def _assert_spread(args: Args) -> None:
    if args["stddev"] == 0:
        raise ValueError("stddev is 0: all values are the same, and cannot be normalized")
