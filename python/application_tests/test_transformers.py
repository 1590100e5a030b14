"""Each transformer gives the same over rows, by SQL, as for a sample, in Python: on rows that were drawn, edges included."""

import math
import random
import unittest

import duckdb
from quern_application.sql import COLUMN_TYPES
from quern_application.transform import TransformedColumn

SEEDS = 200
# On one thread: the tables are small.
CONNECTION = duckdb.connect(config={"threads": 1})


def column(transformer, columns, args, output_type):
    return {
        "id": "0" * 64,
        "name": "made",
        "transformer": {"built_in": transformer},
        "columns": columns,
        "args": {key: {"value": value} for key, value in args.items()},
        "output_type": output_type,
    }


def both_ways(made, raw_type, values):
    """[(by SQL, in Python)] for each value, or the text of the error. The values are rows of one table."""
    transformed = TransformedColumn(made, {"raw": raw_type}, None, None)
    CONNECTION.execute("CREATE OR REPLACE TABLE data (place INTEGER, raw %s)" % COLUMN_TYPES[raw_type])
    rows = [each for pair in enumerate(values) for each in pair]
    CONNECTION.execute("INSERT INTO data VALUES %s" % ", ".join(["(?, ?)"] * len(values)), rows)
    return [
        (
            _outcome(lambda place=place: _by_sql(transformed, place)),
            _outcome(lambda value=value: transformed.transform({"raw": value})),
        )
        for place, value in enumerate(values)
    ]


def _by_sql(transformed, place):
    query = "SELECT %s FROM data WHERE place = ?" % transformed.sql(CONNECTION)
    return CONNECTION.execute(query, [place]).fetchone()[0]


def _outcome(compute):
    try:
        value = compute()
        return "nan" if isinstance(value, float) and math.isnan(value) else value
    except Exception as error:
        text = str(error).replace("Invalid Input Error: ", "")
        return "too large" if "Type DOUBLE with value" in text or "does not fit" in text else text


def drawn_number(draw):
    return draw.choice(
        [0.0, -0.0, 0.1, 1 / 3, 1e-30, 3.4e38, -1e10, float(draw.randint(-99, 99)), draw.uniform(-10, 10)]
    )


class EveryTransformer(unittest.TestCase):
    def assert_same(self, made, raw_type, values):
        for value, (by_sql, in_python) in zip(values, both_ways(made, raw_type, values)):
            self.assertEqual(by_sql, in_python, "%r of %r" % (value, made["args"]))

    def test_normalize(self):
        for seed in range(SEEDS):
            draw = random.Random(seed)
            args = {"mean": drawn_number(draw), "stddev": draw.choice([draw.uniform(1e-3, 9), 2, 0.5])}
            made = column("normalize", {"num": "raw"}, args, "FLOAT_COLUMN")
            self.assert_same(made, "FLOAT_COLUMN", [drawn_number(draw) for _ in range(4)])
            self.assert_same(made, "INT_COLUMN", [draw.randint(-(2**40), 2**40)])

    def test_normalize_without_spread_is_an_error_in_both_directions(self):
        made = column("normalize", {"num": "raw"}, {"mean": 1.0, "stddev": 0.0}, "FLOAT_COLUMN")
        for by_sql, in_python in both_ways(made, "FLOAT_COLUMN", [1.0]):
            self.assertEqual(by_sql, "stddev is 0: all values are the same, and cannot be normalized")
            self.assertEqual(in_python, by_sql)

    def test_index_string(self):
        words = ["", "a", "b", "Iris-setosa", "o'clock", 'a "quoted" one', "žluťoučký", "a\nb", "c"]
        for seed in range(SEEDS // 4):
            draw = random.Random(seed)
            index = draw.sample(words, draw.randint(1, len(words)))
            made = column("index_string", {"text": "raw"}, {"index": index}, "INT_COLUMN")
            self.assert_same(made, "STRING_COLUMN", words)

    def test_bucketize(self):
        for seed in range(SEEDS):
            draw = random.Random(seed)
            inner = sorted({drawn_number(draw) for _ in range(draw.randint(0, 5))})
            made = column(
                "bucketize", {"num": "raw"}, {"bucket_boundaries": [-math.inf, *inner, math.inf]}, "INT_COLUMN"
            )
            self.assert_same(made, "FLOAT_COLUMN", [*inner, *[drawn_number(draw) for _ in range(3)]])
            self.assert_same(made, "INT_COLUMN", [draw.randint(-100, 100)])

    def test_reverse(self):
        normalized = TransformedColumn(
            column("normalize", {"num": "raw"}, {"mean": 3.0, "stddev": 2.0}, "FLOAT_COLUMN"),
            {"raw": "FLOAT_COLUMN"},
            None,
            None,
        )
        self.assertEqual(normalized.reverse(normalized.transform({"raw": 8.0})), 8.0)
        indexed = TransformedColumn(
            column("index_string", {"text": "raw"}, {"index": ["b", "a"]}, "INT_COLUMN"),
            {"raw": "STRING_COLUMN"},
            None,
            None,
        )
        self.assertEqual(indexed.reverse(1), "a")
        bucketized = TransformedColumn(
            column("bucketize", {"num": "raw"}, {"bucket_boundaries": [-math.inf, math.inf]}, "INT_COLUMN"),
            {"raw": "INT_COLUMN"},
            None,
            None,
        )
        self.assertIsNone(bucketized.reverse(0))
