"""Code for Cortex 0.3 was written for Spark; DuckDB does the work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def data_frame(connection: DuckDBPyConnection) -> Any:
    """The view `data`, with the interface of Spark."""
    from duckdb.experimental.spark.sql import SparkSession
    from duckdb.experimental.spark.sql.dataframe import DataFrame

    session = SparkSession.builder.getOrCreate()
    return DataFrame(connection.table("data"), session)


def stand_in_for_pyspark() -> None:
    """Without Spark, `pyspark.sql` is DuckDB's replacement."""
    import importlib.util
    import sys

    if "pyspark" in sys.modules or importlib.util.find_spec("pyspark") is not None:
        return
    import duckdb.experimental.spark as spark
    import duckdb.experimental.spark.sql as spark_sql
    from duckdb.experimental.spark.sql import functions, types

    sys.modules.update(
        {"pyspark": spark, "pyspark.sql": spark_sql, "pyspark.sql.functions": functions, "pyspark.sql.types": types}
    )
