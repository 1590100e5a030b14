"""From the user's files to one Parquet file of typed columns, strictly: a value of the wrong type ends the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .sql import COLUMN_TYPES, exactly, name, number, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duckdb import DuckDBPyConnection

    from .shapes import Resource

# The options of csv_config that DuckDB's reader has under another name.
CSV_OPTIONS = {
    "sep": "delim",
    "quote": "quote",
    "escape": "escape",
    "comment": "comment",
    "encoding": "encoding",
    "header": "header",
}


def ingest(connection: DuckDBPyConnection, environment: Resource, into: str) -> tuple[int, int]:
    """Returns (rows read, rows kept). Raises duckdb.Error, or ValueError if columns are missing or of another type."""
    columns = environment["columns"]
    source = _source(connection, environment)
    connection.execute("CREATE OR REPLACE TEMP VIEW source AS SELECT %s FROM %s" % (_selection(environment), source))
    rows = _limited(connection, environment.get("limit"))
    if environment["drop_null"]:
        present = " AND ".join("%s IS NOT NULL" % name(column["name"]) for column in columns)
        kept = "SELECT * FROM (%s) WHERE %s" % (rows, present)
    else:
        kept = rows
    connection.execute("COPY (%s) TO %s (FORMAT parquet)" % (kept, text(into)))
    kept_rows = connection.execute("SELECT count(*) FROM read_parquet(%s)" % text(exactly(into))).fetchall()[0][0]
    if not environment["drop_null"]:
        return kept_rows, kept_rows
    return connection.execute("SELECT count(*) FROM (%s)" % rows).fetchall()[0][0], kept_rows


def _source(connection: DuckDBPyConnection, environment: Resource) -> str:
    files = "[%s]" % ", ".join(text(exactly(file)) for file in environment["files"])
    if environment["type"] == "parquet":
        _check_parquet(connection, files, environment["columns"])
        return "read_parquet(%s)" % files
    config = environment["csv_config"]
    types = {column["source"]: _read_type(column["type"], config) for column in environment["columns"]}
    options = {
        "columns": "{%s}" % ", ".join("%s: %s" % (text(key), text(value)) for key, value in types.items()),
        "auto_detect": "false",
        "header": "false",
        "delim": text(","),
        "nullstr": "[%s]" % ", ".join(text(value) for value in dict.fromkeys(["", config.get("null_value", "")])),
    }
    for key, option in CSV_OPTIONS.items():
        if key in config:
            options[option] = str(config[key]).lower() if key == "header" else text(config[key])
    return "read_csv(%s, %s)" % (files, ", ".join("%s = %s" % item for item in options.items()))


def _read_type(column_type: str, config: dict[str, Any]) -> str:
    """As text if the value is checked before its conversion, because DuckDB would round 1.5 to an integer."""
    return COLUMN_TYPES[column_type] if column_type == "FLOAT_COLUMN" and not _is_converted(config) else "VARCHAR"


def _is_converted(config: dict[str, Any]) -> bool:
    """Whether the text is a number."""
    return any(key in config for key in ("nan_value", "positive_inf", "negative_inf"))


def _selection(environment: Resource) -> str:
    config = environment["csv_config"]
    values = ((_value(column, environment["type"], config), name(column["name"])) for column in environment["columns"])
    return ", ".join("%s AS %s" % pair for pair in values)


def _value(column: Resource, data_type: str, config: dict[str, Any]) -> str:
    value = name(column["source"])
    if column["type"] == "STRING_COLUMN":
        if config.get("ignore_leading_white_space"):
            value = "ltrim(%s)" % value
        if config.get("ignore_trailing_white_space"):
            value = "rtrim(%s)" % value
        return value
    if column["type"] == "INT_COLUMN" and data_type == "csv":
        has_more = " OR ".join("contains(%s, '%s')" % (value, sign) for sign in ".eE")
        message = "concat('column %s: \"', %s, '\" is not an integer')" % (column["name"], value)
        return "CASE WHEN %s THEN error(%s) ELSE CAST(%s AS BIGINT) END" % (has_more, message, value)
    if column["type"] == "FLOAT_COLUMN" and _is_converted(config):
        words = {"nan_value": "nan", "positive_inf": "inf", "negative_inf": "-inf"}
        cases = " ".join(
            "WHEN %s THEN %s" % (text(config[key]), text(word)) for key, word in words.items() if key in config
        )
        value = "CASE %s %s ELSE %s END" % (value, cases, value)
    return "CAST(%s AS %s)" % (value, COLUMN_TYPES[column["type"]])


def _check_parquet(connection: DuckDBPyConnection, files: str, columns: list[Resource]) -> None:
    found = {row[0]: row[1] for row in connection.execute("DESCRIBE SELECT * FROM read_parquet(%s)" % files).fetchall()}
    missing = [column["source"] for column in columns if column["source"] not in found]
    if missing:
        raise ValueError("parquet dataset: missing columns: [%s]" % ", ".join(missing))
    wrong = [
        "%s is %s, and must fit %s" % (column["source"], found[column["source"]], column["type"])
        for column in columns
        if not _fits(found[column["source"]], column["type"])
    ]
    if wrong:
        raise ValueError("raw data schema mismatch: %s" % "; ".join(wrong))


def _fits(found: str, column_type: str) -> bool:
    if column_type == "STRING_COLUMN":
        return found == "VARCHAR"
    integers = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
    return (
        found in integers
        if column_type == "INT_COLUMN"
        else found in (*integers, "FLOAT", "DOUBLE") or found.startswith("DECIMAL")
    )


def _limited(connection: DuckDBPyConnection, limit: dict[str, Any] | None) -> str:
    everything = "SELECT * FROM source"
    if not limit:
        return everything
    rows = limit.get("num_rows")
    if rows is None:
        rows = int(connection.execute("SELECT count(*) FROM source").fetchall()[0][0] * limit["fraction_of_rows"])
    if not limit.get("randomize"):
        return "%s LIMIT %d" % (everything, rows)
    seed = "" if limit.get("random_seed") is None else " REPEATABLE (%d)" % limit["random_seed"]
    return "%s USING SAMPLE reservoir(%d ROWS)%s" % (everything, rows, seed)


def violations(connection: DuckDBPyConnection, columns: list[Resource]) -> list[str]:
    """The rules of these raw columns that the view `data` breaks, one line for each, in order."""
    rules = [rule for column in columns for rule in _rules(column)]
    if not rules:
        return []
    counts = ", ".join("count(*) FILTER (WHERE %s)" % broken for _, broken in rules)
    total, *broken = connection.execute("SELECT count(*), %s FROM data" % counts).fetchall()[0]
    return [
        "Data validation (%s) has been violated in %d/%d samples" % (rule, count, total)
        for (rule, _), count in zip(rules, broken)
        if count > 0
    ]


def _rules(column: Resource) -> Iterator[tuple[str, str]]:
    """(the rule as the user knows it, the condition of a row that breaks it). Only `required` minds nulls."""
    quoted = name(column["name"])
    if column["required"]:
        yield "%s IS NOT NULL" % column["name"], "%s IS NULL" % quoted
    for key, sign in (("min", ">="), ("max", "<=")):
        if column.get(key) is not None:
            yield (
                "%s %s %s" % (column["name"], sign, column[key]),
                "NOT (%s %s %s)" % (quoted, sign, _literal(column, column[key])),
            )
    if column.get("values") is not None:
        values = ", ".join(_literal(column, value) for value in column["values"])
        legal = ", ".join(str(value) for value in column["values"])
        yield "%s IN (%s)" % (column["name"], legal), "%s NOT IN (%s)" % (quoted, values)


def _literal(column: Resource, value: Any) -> str:
    """As the column holds it: a FLOAT_COLUMN has 32 bits, and so have its bounds."""
    if column["type"] == "STRING_COLUMN":
        return text(value)
    return "CAST(%s AS FLOAT)" % number(value) if column["type"] == "FLOAT_COLUMN" else number(value)
