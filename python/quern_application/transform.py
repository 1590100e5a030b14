"""A transformed column: its transformer, built in or the user's own, with its inputs and args."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .spark import data_frame, stand_in_for_pyspark
from .sql import COLUMN_TYPES, name
from .transformers import TRANSFORMERS, to_column
from .user_code import function_of, load_module

if TYPE_CHECKING:
    from collections.abc import Callable

    from duckdb import DuckDBPyConnection

    from .shapes import Resource, Sample


class TransformedColumn:
    """`values` gives the value of an arg that is an aggregate, by its id.

    The user's own transformer has these functions:

    - `transform_python(sample, args)`: `sample` has the values of one row by the names of the inputs. An input that is
      a list of columns is a list of values. It returns the value of the column, of its `output_type`.
    - `reverse_transform_python(value, args)`, which may be missing: the value before.
    - `transform_spark(data, columns, args, transformed_column_name)` in the place of `transform_python`. It returns a
      DataFrame with that column added. It makes columns for training only.

    Their errors pass through.
    """

    def __init__(self, column: Resource, raw_types: dict[str, str], project: str, values: Callable[[str], Any]) -> None:
        self.name = column["name"]
        self.output_type = column["output_type"]
        self.columns = column["columns"]
        self._raw_types = raw_types
        self.args = {
            key: values(arg["aggregate"]) if "aggregate" in arg else arg["value"] for key, arg in column["args"].items()
        }
        built_in = column["transformer"].get("built_in")
        self._id = column["id"]
        self._function_name: str | None = None
        self._built_in: Any = None if built_in is None else TRANSFORMERS[built_in]
        self._spark: Any = None
        if self._built_in is not None:
            self._transform = self._built_in.transform
            self._reverse = getattr(self._built_in, "reverse", None)
        else:
            path = column["transformer"]["path"]
            module = load_module(project, path)
            self._transform = getattr(module, "transform_python", None)
            self._spark = (
                None
                if self._transform is not None
                else function_of(module, path, "transform_python", "transform_spark")
            )
            self._reverse = getattr(module, "reverse_transform_python", None)

    @property
    def has_two_ways(self) -> bool:
        """Over rows by SQL, and for a sample in Python. The user's own transformers are Python in both cases."""
        return self._built_in is not None

    def assert_prepares_samples(self) -> None:
        """Raises ValueError if the transformer has only transform_spark(), which makes columns only for training."""
        if self._spark is not None:
            raise ValueError(
                "%s: its transformer has transform_spark() only; a feature column needs "
                "transform_python(sample, args), which prepares the samples of requests" % self.name
            )

    @property
    def inputs(self) -> list[str]:
        """The raw columns that it needs, each once."""
        given = [each if isinstance(each, list) else [each] for each in self.columns.values()]
        return list(dict.fromkeys(column for columns in given for column in columns))

    def sql(self, connection: DuckDBPyConnection) -> str:
        """An expression over the view `data`."""
        if self._built_in is not None:
            quoted = {key: name(column) for key, column in self.columns.items()}
            expression = self._built_in.sql(connection, quoted, self.args)
        elif self._spark is not None:
            expression = self._column_of_frame(connection)
        else:
            expression = self._function(connection)
        return "CAST(%s AS %s)" % (expression, COLUMN_TYPES[self.output_type])

    def transform(self, row: Sample) -> Any:
        """`row` has the raw columns by name. Raises ValueError if the transformer has only transform_spark()."""
        self.assert_prepares_samples()
        sample = {
            key: [self._read(row, each) for each in given] if isinstance(given, list) else self._read(row, given)
            for key, given in self.columns.items()
        }
        return to_column(self._transform(sample, self.args), self.output_type)

    def reverse(self, value: Any) -> Any:
        """The value before the transformation; None if it is not known."""
        return None if self._reverse is None else self._reverse(value, self.args)

    def _read(self, row: Sample, column: str) -> Any:
        return to_column(row[column], self._raw_types[column])

    def _column_of_frame(self, connection: DuckDBPyConnection) -> str:
        """The column that the user's transform_spark() adds to all rows at once, looked up for each row."""
        if self._function_name is None:
            stand_in_for_pyspark()
            frame = self._spark(data_frame(connection), self.columns, self.args, self.name)
            if self.name not in frame.columns:
                raise ValueError("transform_spark() returned a DataFrame without the column %s" % self.name)
            self._function_name = "frame_%s_%x" % (self._id[:16], id(self))
            frame.relation.project("file_row_number, %s" % name(self.name)).create(self._function_name)
        table = self._function_name
        return "(SELECT {0}.{1} FROM {0} WHERE {0}.file_row_number = data.file_row_number)".format(
            table, name(self.name)
        )

    def _function(self, connection: DuckDBPyConnection) -> str:
        """The user's transform_python(), called by DuckDB with each row as a dict."""
        inputs = self.inputs
        if self._function_name is None:
            self._function_name = "transform_%s_%x" % (self._id[:16], id(self))
            fields = ", ".join("%s %s" % (name(column), COLUMN_TYPES[self._raw_types[column]]) for column in inputs)
            types = ["STRUCT(%s)" % fields]
            # DuckDB evaluates a function's annotations; a lambda has none.
            function = lambda row: self.transform(row)  # noqa: E731
            connection.create_function(
                self._function_name, function, types, COLUMN_TYPES[self.output_type], null_handling="special"
            )
        return "%s(struct_pack(%s))" % (
            self._function_name,
            ", ".join("{0} := {0}".format(name(column)) for column in inputs),
        )


def sanity_check(connection: DuckDBPyConnection, columns: list[TransformedColumn], rows: int) -> None:
    """Both ways of each transformer must give the same for the first rows. Raises ValueError if they do not."""
    for column in columns:
        inputs = ", ".join(name(each) for each in column.inputs)
        query = "SELECT %s, %s FROM (SELECT * FROM data LIMIT %d) AS data" % (inputs, column.sql(connection), rows)
        for *values, by_sql in connection.execute(query).fetchall():
            if not column.has_two_ways or any(value is None for value in values):
                continue
            in_python = column.transform(dict(zip(column.inputs, values)))
            if in_python != by_sql:
                raise ValueError(
                    "%s: the transformer gives %r in Python and %r in SQL for %r; this is a bug in Quern"
                    % (column.name, in_python, by_sql, dict(zip(column.inputs, values)))
                )
