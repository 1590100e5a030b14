"""Values over all rows. Those with a single expression are computed in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .aggregators import AGGREGATORS, finish, is_whole_query
from .spark import data_frame, stand_in_for_pyspark
from .sql import name
from .user_code import function_of, load_module

if TYPE_CHECKING:
    from collections.abc import Callable

    from duckdb import DuckDBPyConnection

    from .shapes import Args, Resource


def one_pass(connection: DuckDBPyConnection, aggregates: list[Resource], done: Callable[[Resource, Any], None]) -> None:
    """Computes those that come with Quern; `done(aggregate, value)` for each. The rows are the view `data`.

    Raises ValueError if a column has no value to aggregate, and duckdb.Error.
    """
    expressions = [(each, _expression(each)) for each in aggregates]
    together = [pair for pair in expressions if not is_whole_query(pair[1])]
    if together:
        row = connection.execute(
            "SELECT %s FROM data" % ", ".join(expression for _, expression in together)
        ).fetchall()[0]
        for (aggregate, _), value in zip(together, row):
            done(aggregate, _finished(aggregate, value))
    for aggregate, query in expressions:
        if is_whole_query(query):
            done(aggregate, _finished(aggregate, connection.execute(query).fetchall()[0][0]))


def own_aggregate(connection: DuckDBPyConnection, aggregate: Resource, project: str) -> Any:
    """The value of the user's own aggregator, which has one of these functions:

    - `aggregate_python(data, columns, args)`: `data` is a DuckDB relation of all rows.
    - `aggregate_spark(data, columns, args)`: `data` is a DataFrame with Spark's interface, by DuckDB.

    `columns` has the names of the input columns, `args` the values, both by the aggregator's own names. The function
    returns a value that JSON can hold.

    Raises AttributeError if the file has neither function. What the function raises passes through.
    """
    path = aggregate["aggregator"]["path"]
    stand_in_for_pyspark()
    function = function_of(load_module(project, path), path, "aggregate_python", "aggregate_spark")
    if function.__name__ == "aggregate_python":
        return function(connection.table("data"), aggregate["columns"], _args(aggregate))
    return function(data_frame(connection), aggregate["columns"], _args(aggregate))


def _expression(aggregate: Resource) -> str:
    columns = {
        key: [name(each) for each in given] if isinstance(given, list) else name(given)
        for key, given in aggregate["columns"].items()
    }
    return AGGREGATORS[aggregate["aggregator"]["built_in"]](columns, _args(aggregate))


def _args(aggregate: Resource) -> Args:
    return {key: arg["value"] for key, arg in aggregate["args"].items()}


def _finished(aggregate: Resource, value: Any) -> Any:
    try:
        return finish(aggregate["aggregator"]["built_in"], value)
    except ValueError as error:
        raise ValueError("%s: %s" % (aggregate["name"], error)) from None
