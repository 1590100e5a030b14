"""DuckDB, and values as SQL."""

from __future__ import annotations

import re

import duckdb

COLUMN_TYPES = {
    "INT_COLUMN": "BIGINT",
    "FLOAT_COLUMN": "FLOAT",
    "STRING_COLUMN": "VARCHAR",
    "INT_LIST_COLUMN": "BIGINT[]",
    "FLOAT_LIST_COLUMN": "FLOAT[]",
    "STRING_LIST_COLUMN": "VARCHAR[]",
}


def connect(temporary_directory: str, memory_limit: str) -> duckdb.DuckDBPyConnection:
    """A database in memory that uses disk for what does not fit.

    `memory_limit` is a size as DuckDB writes it, such as `1GiB`.
    """
    connection = duckdb.connect()
    connection.execute("SET temp_directory = %s" % text(temporary_directory))
    connection.execute("SET memory_limit = %s" % text(memory_limit))
    connection.execute("SET enable_progress_bar = false")
    return connection


def name(identifier: str) -> str:
    """An identifier in quotes."""
    return '"%s"' % identifier.replace('"', '""')


def text(value: str) -> str:
    """A string literal."""
    return "'%s'" % value.replace("'", "''")


def exactly(path: str) -> str:
    """A pattern that matches this path only: DuckDB takes the names of files to read for patterns."""
    return re.sub(r"([*?[])", r"[\1]", path)


def number(value: float) -> str:
    """A number as it is: a literal with a point would be a decimal, of another precision."""
    return "CAST(%s AS %s)" % (text(repr(value)), "BIGINT" if isinstance(value, int) else "DOUBLE")
