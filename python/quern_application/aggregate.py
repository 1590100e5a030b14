"""Values over all rows: those that one expression gives are computed in one pass."""

from .aggregators import AGGREGATORS, finish, is_whole_query
from .spark import data_frame, stand_in_for_pyspark
from .sql import name
from .user_code import function_of, load_module


def one_pass(connection, aggregates, done):
    """Computes those that come with Quern; `done(aggregate, value)` for each. The rows are the view `data`."""
    expressions = [(each, _expression(each)) for each in aggregates]
    together = [pair for pair in expressions if not is_whole_query(pair[1])]
    if together:
        row = connection.execute("SELECT %s FROM data" % ", ".join(expression for _, expression in together)).fetchall()[0]
        for (aggregate, _), value in zip(together, row):
            done(aggregate, _finished(aggregate, value))
    for aggregate, query in expressions:
        if is_whole_query(query):
            done(aggregate, _finished(aggregate, connection.execute(query).fetchall()[0][0]))


def own_aggregate(connection, aggregate, project):
    """
    The user's own: `aggregate_python(data, columns, args)` gets a DuckDB relation, `aggregate_spark(data, columns, args)` of
    former days a DataFrame with the interface of Spark's, by DuckDB.
    """
    path = aggregate["aggregator"]["path"]
    stand_in_for_pyspark()
    function = function_of(load_module(project, path), path, "aggregate_python", "aggregate_spark")
    if function.__name__ == "aggregate_python":
        return function(connection.table("data"), aggregate["columns"], _args(aggregate))
    return function(data_frame(connection), aggregate["columns"], _args(aggregate))


def _expression(aggregate):
    columns = {
        key: [name(each) for each in given] if isinstance(given, list) else name(given) for key, given in aggregate["columns"].items()
    }
    return AGGREGATORS[aggregate["aggregator"]["built_in"]](columns, _args(aggregate))


def _args(aggregate):
    return {key: arg["value"] for key, arg in aggregate["args"].items()}


def _finished(aggregate, value):
    try:
        return finish(aggregate["aggregator"]["built_in"], value)
    except ValueError as error:
        raise ValueError("%s: %s" % (aggregate["name"], error)) from None
