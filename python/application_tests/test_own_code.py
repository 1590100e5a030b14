"""Aggregators and transformers of the user's own."""

import os
import tempfile
import unittest

import duckdb
from quern_application.aggregate import own_aggregate
from quern_application.transform import TransformedColumn, sanity_check


class OwnCode(unittest.TestCase):
    def setUp(self):
        self.project = tempfile.TemporaryDirectory()
        self.addCleanup(self.project.cleanup)
        self.connection = duckdb.connect()
        self.connection.execute(
            "CREATE TEMP VIEW data AS SELECT * FROM (VALUES (1, 'a'), (2, 'bb'), (4, NULL)) t(n, word)"
        )

    def write(self, name, text):
        with open(os.path.join(self.project.name, name), "w", encoding="utf-8") as file:
            file.write(text)
        return name

    def aggregate(self, path, args=None):
        given = {key: {"value": value} for key, value in (args or {}).items()}
        aggregate = {"name": "own", "aggregator": {"path": path}, "columns": {"col": "n"}, "args": given}
        return own_aggregate(self.connection, aggregate, self.project.name)

    def test_an_aggregator_in_python(self):
        path = self.write(
            "one.py",
            "def aggregate_python(data, columns, args):\n    return data.sum(columns['col']).fetchall()[0][0] * args['times']\n",
        )
        self.assertEqual(self.aggregate(path, {"times": 10}), 70)

    def test_an_aggregator_written_for_spark_runs_without_it(self):
        path = self.write(
            "two.py",
            "import pyspark.sql.functions as F\n\n"
            "def aggregate_spark(data, columns, args):\n"
            "    return data.select(F.max(F.col(columns['col']))).collect()[0][0]\n",
        )
        self.assertEqual(self.aggregate(path), 4)

    def test_a_file_without_the_function_is_an_error(self):
        path = self.write("three.py", "def aggregate(): pass\n")
        with self.assertRaisesRegex(
            AttributeError, r"three.py: function aggregate_python\(\) or aggregate_spark\(\) is not defined"
        ):
            self.aggregate(path)

    def transformed(self, path, output_type="INT_COLUMN", columns=None):
        made = {
            "id": "f" * 64,
            "name": "made",
            "transformer": {"path": path},
            "columns": columns or {"word": "word"},
            "args": {"more": {"aggregate": "x"}},
            "output_type": output_type,
        }
        types = {"n": "INT_COLUMN", "word": "STRING_COLUMN"}
        return TransformedColumn(made, types, self.project.name, {"x": 100}.__getitem__)

    def over_rows(self, column):
        query = "SELECT %s FROM data" % column.sql(self.connection)
        return [row[0] for row in self.connection.execute(query).fetchall()]

    def test_a_transformer_is_one_function_for_rows_and_samples(self):
        path = self.write(
            "four.py",
            "def transform_python(sample, args):\n"
            "    return None if sample['word'] is None else len(sample['word']) + args['more']\n\n"
            "def reverse_transform_python(value, args):\n    return value - args['more']\n",
        )
        column = self.transformed(path)
        self.assertEqual(self.over_rows(column), [101, 102, None])
        self.assertEqual(column.transform({"word": "bb"}), 102)
        self.assertEqual(column.reverse(102), 2)
        sanity_check(self.connection, [self.transformed(path)], 10)

    def test_a_transformer_written_for_spark_makes_a_column_for_training(self):
        self.connection.execute(
            "CREATE OR REPLACE TEMP VIEW data AS SELECT n, row_number() OVER () - 1 AS file_row_number FROM (VALUES (2), (1), (4)) t(n)"
        )
        path = self.write(
            "former.py",
            "import pyspark.sql.functions as F\n\n"
            "def transform_spark(data, columns, args, transformed_column_name):\n"
            "    return data.withColumn(transformed_column_name, F.when(data[columns['col']] == 1, args['more']).otherwise(0.5))\n",
        )
        column = self.transformed(path, "FLOAT_COLUMN", {"col": "n"})
        sanity_check(self.connection, [column], 2)
        self.assertEqual(self.over_rows(column), [0.5, 100.0, 0.5])
        with self.assertRaisesRegex(
            ValueError, r"made: its transformer has transform_spark\(\) only; a feature column needs transform_python"
        ):
            column.transform({"n": 1})

    def test_lists_of_columns_and_list_columns(self):
        path = self.write(
            "five.py", "def transform_python(sample, args):\n    return [n * 0.5 for n in sample['all']]\n"
        )
        column = self.transformed(path, "FLOAT_LIST_COLUMN", {"all": ["n", "n"]})
        self.assertEqual(self.over_rows(column), [[0.5, 0.5], [1.0, 1.0], [2.0, 2.0]])
        self.assertEqual(column.inputs, ["n"])

    def test_an_error_of_a_transformer_has_its_text(self):
        path = self.write("six.py", "def transform_python(sample, args):\n    raise KeyError('no such word')\n")
        with self.assertRaisesRegex(duckdb.Error, "KeyError: 'no such word'"):
            self.over_rows(self.transformed(path))

    def test_a_value_of_the_wrong_type_is_refused(self):
        path = self.write("seven.py", "def transform_python(sample, args):\n    return 'text'\n")
        with self.assertRaises(duckdb.Error):
            self.over_rows(self.transformed(path))
