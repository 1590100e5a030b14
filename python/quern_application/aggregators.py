"""The aggregators that come with Quern, each as SQL (Cortex's, which were Spark's).

An aggregator takes the names of its columns as SQL and its args. It gives an expression over the rows of the view
`data`, or a whole query, which begins with SELECT, if one expression is not enough. Rows without a value do not count.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .sql import number

if TYPE_CHECKING:
    from collections.abc import Callable

    from .shapes import Args, Inputs

    Aggregator = Callable[[Inputs, Args], str]

# The relative error of DuckDB's estimate; a request for a smaller error gets the exact count.
ESTIMATE_ERROR = 0.05


def _over(function: str) -> Aggregator:
    return lambda columns, args: "%s(%s)" % (function, columns["col"])


def _over_pair(function: str) -> Aggregator:
    return lambda columns, args: (
        "%s(CAST(%s AS DOUBLE), CAST(%s AS DOUBLE))" % (function, columns["col1"], columns["col2"])
    )


def _in_doubles(function: str) -> Aggregator:
    return lambda columns, args: "%s(CAST(%s AS DOUBLE))" % (function, columns["col"])


def _distinct_values(columns: Inputs, args: Args) -> str:
    return "list_sort(list(DISTINCT {0}) FILTER (WHERE {0} IS NOT NULL))".format(columns["col"])


def _count_distinct(columns: Inputs, args: Args) -> str:
    """As in SQL: a row in which one of the columns is null does not count."""
    every = [columns["col"], *columns["cols"]]
    present = " AND ".join("%s IS NOT NULL" % column for column in every)
    return "count(DISTINCT row(%s)) FILTER (WHERE %s)" % (", ".join(every), present)


def _approximate_count(columns: Inputs, args: Args) -> str:
    if args["rsd"] < ESTIMATE_ERROR:
        return "count(DISTINCT %s)" % columns["col"]
    return "approx_count_distinct(%s)" % columns["col"]


def _skewness(columns: Inputs, args: Args) -> str:
    """That of the population, m3 / m2^1.5; DuckDB's own is corrected for samples."""
    x = "CAST(%s AS DOUBLE)" % columns["col"]
    mean = "(SELECT avg(%s) FROM data)" % x
    return "avg(power(%s - %s, 3)) / power(var_pop(%s), 1.5)" % (x, mean, x)


def _bucket_boundaries(columns: Inputs, args: Args) -> str:
    """Quantiles of the values, each once, between the infinities."""
    buckets = args["num_buckets"]
    cuts = [number(at / buckets) for at in range(1, buckets)]
    inner = "quantile_disc(%s, [%s])" % (columns["col"], ", ".join(cuts)) if cuts else "[]"
    return "list_sort(list_distinct(CAST(%s AS DOUBLE[])))" % inner


def _by_frequency(columns: Inputs, args: Args) -> str:
    return (
        "SELECT list(value ORDER BY rows DESC, value) FROM "
        "(SELECT {0} AS value, count(*) AS rows FROM data WHERE {0} IS NOT NULL GROUP BY 1)".format(columns["col"])
    )


def _distribution(columns: Inputs, args: Args) -> str:
    return (
        "SELECT map(list(value), list(rows / total)) FROM (SELECT {0} AS value, count(*) AS rows, "
        "sum(count(*)) OVER () AS total FROM data WHERE {0} IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1)".format(
            columns["col"]
        )
    )


AGGREGATORS: dict[str, Aggregator] = {
    "approx_count_distinct": _approximate_count,
    "avg": _in_doubles("avg"),
    "mean": _in_doubles("avg"),
    **{"collect_set_%s" % kind: _distinct_values for kind in ("int", "float", "string")},
    "count": _over("count"),
    "count_distinct": _count_distinct,
    "covar_pop": _over_pair("covar_pop"),
    "covar_samp": _over_pair("covar_samp"),
    "kurtosis": _in_doubles("kurtosis_pop"),
    "skewness": _skewness,
    **{"%s_%s" % (end, kind): _over(end) for end in ("max", "min") for kind in ("int", "float", "string")},
    "stddev": _in_doubles("stddev_samp"),
    "stddev_samp": _in_doubles("stddev_samp"),
    "stddev_pop": _in_doubles("stddev_pop"),
    "sum_int": _over("sum"),
    "sum_float": _in_doubles("sum"),
    "sum_distinct_int": lambda columns, args: "sum(DISTINCT %s)" % columns["col"],
    "sum_distinct_float": lambda columns, args: "sum(DISTINCT CAST(%s AS DOUBLE))" % columns["col"],
    "var_pop": _in_doubles("var_pop"),
    "var_samp": _in_doubles("var_samp"),
    "variance": _in_doubles("var_samp"),
    "bucket_boundaries": _bucket_boundaries,
    "index_string": _by_frequency,
    "class_distribution_string": _distribution,
    "class_distribution_int": _distribution,
}


def is_whole_query(expression: str) -> bool:
    """Whether it is a query, and not an expression to select with others."""
    return expression.startswith("SELECT")


def finish(aggregator: str, value: Any) -> Any:
    """The value as it is stored. Raises ValueError if there was nothing to aggregate."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        raise ValueError("there is no value to aggregate")
    if aggregator == "bucket_boundaries":
        return [-math.inf, *value, math.inf]
    return value
