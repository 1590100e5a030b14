"""Every aggregator against what its definition gives, computed here by hand."""

import math
import statistics
import unittest

import duckdb
from quern_application.aggregate import one_pass

NUMBERS = [3, 1, 4, 1, 5, 9, 2, 6, None]
OTHERS = [2.0, 7.0, 1.0, 8.0, 2.0, 8.0, 1.0, 8.0, None]
WORDS = ["b", "a", "b", "c", "a", "b", "c", None, "a"]
PRESENT = NUMBERS[:-1]
MEAN = statistics.mean(PRESENT)


def moment(power):
    return statistics.mean((number - MEAN) ** power for number in PRESENT)


def covariance(divisor):
    others = OTHERS[:-1]
    mean = statistics.mean(others)
    return sum((a - MEAN) * (b - mean) for a, b in zip(PRESENT, others)) / divisor


EXPECTED = {
    ("approx_count_distinct", "i"): 7,
    ("avg", "f"): MEAN,
    ("mean", "i"): MEAN,
    ("collect_set_int", "i"): [1, 2, 3, 4, 5, 6, 9],
    ("collect_set_float", "g"): [1.0, 2.0, 7.0, 8.0],
    ("collect_set_string", "s"): ["a", "b", "c"],
    ("count", "s"): 8,
    ("kurtosis", "i"): moment(4) / moment(2) ** 2 - 3,
    ("skewness", "i"): moment(3) / moment(2) ** 1.5,
    ("max_int", "i"): 9,
    ("max_float", "f"): 9.0,
    ("max_string", "s"): "c",
    ("min_int", "i"): 1,
    ("min_float", "g"): 1.0,
    ("min_string", "s"): "a",
    ("stddev", "f"): statistics.stdev(PRESENT),
    ("stddev_samp", "i"): statistics.stdev(PRESENT),
    ("stddev_pop", "i"): statistics.pstdev(PRESENT),
    ("sum_int", "i"): 31,
    ("sum_float", "g"): 37.0,
    ("sum_distinct_int", "i"): 30,
    ("sum_distinct_float", "g"): 18.0,
    ("var_pop", "f"): statistics.pvariance(PRESENT),
    ("var_samp", "i"): statistics.variance(PRESENT),
    ("variance", "i"): statistics.variance(PRESENT),
    ("index_string", "s"): ["a", "b", "c"],
    ("class_distribution_string", "s"): {"a": 0.375, "b": 0.375, "c": 0.25},
    ("class_distribution_int", "i"): {1: 0.25, **{number: 0.125 for number in (2, 3, 4, 5, 6, 9)}},
}


def value_of(name, columns, args=None):
    connection = duckdb.connect()
    connection.execute("CREATE TABLE data (i BIGINT, f FLOAT, g FLOAT, s VARCHAR)")
    for number, other, word in zip(NUMBERS, OTHERS, WORDS):
        connection.execute("INSERT INTO data VALUES (?, ?, ?, ?)", [number, number, other, word])
    values = []
    aggregate = {
        "name": name,
        "aggregator": {"built_in": name},
        "columns": columns,
        "args": {key: {"value": value} for key, value in (args or {}).items()},
    }
    one_pass(connection, [aggregate], lambda _, value: values.append(value))
    return values[0]


class EveryAggregator(unittest.TestCase):
    def test_aggregates_one_column(self):
        for (name, column), expected in EXPECTED.items():
            value = value_of(name, {"col": column}, {"rsd": 0.01} if name == "approx_count_distinct" else {})
            if isinstance(expected, float):
                self.assertAlmostEqual(value, expected, places=9, msg=name)
            else:
                self.assertEqual(value, expected, name)
            self.assertIs(type(value), type(expected), name)

    def test_index_string_has_the_most_frequent_first(self):
        connection = duckdb.connect()
        connection.execute("CREATE TABLE data AS SELECT unnest(['x', 'y', 'y', 'a', 'y', 'x']) AS s")
        found = []
        aggregate = {"name": "index", "aggregator": {"built_in": "index_string"}, "columns": {"col": "s"}, "args": {}}
        one_pass(connection, [aggregate], lambda _, value: found.append(value))
        self.assertEqual(found, [["y", "x", "a"]])

    def test_an_estimate_is_within_its_allowed_error(self):
        self.assertAlmostEqual(value_of("approx_count_distinct", {"col": "i"}, {"rsd": 0.1}), 7, delta=1)

    def test_aggregates_two_columns(self):
        self.assertAlmostEqual(value_of("covar_pop", {"col1": "i", "col2": "g"}), covariance(8))
        self.assertAlmostEqual(value_of("covar_samp", {"col1": "i", "col2": "g"}), covariance(7))

    def test_aggregates_several_columns(self):
        self.assertEqual(value_of("count_distinct", {"col": "g", "cols": []}), 4)
        pairs = {(number, word) for number, word in zip(NUMBERS, WORDS) if number is not None and word is not None}
        self.assertEqual(value_of("count_distinct", {"col": "i", "cols": ["s"]}), len(pairs))

    def test_bucket_boundaries(self):
        connection = duckdb.connect()
        connection.execute("CREATE TABLE data AS SELECT unnest([1, 2, 3, 4, 5, 6]) AS i")
        for buckets, expected in ((3, [2.0, 4.0]), (2, [3.0]), (1, []), (6, [1.0, 2.0, 3.0, 4.0, 5.0])):
            found = []
            aggregate = {
                "name": "bounds",
                "aggregator": {"built_in": "bucket_boundaries"},
                "columns": {"col": "i"},
                "args": {"num_buckets": {"value": buckets}},
            }
            one_pass(connection, [aggregate], lambda _, value, found=found: found.append(value))
            self.assertEqual(found, [[-math.inf, *expected, math.inf]])

    def test_no_rows_are_an_error_with_the_name_of_the_aggregate(self):
        connection = duckdb.connect()
        connection.execute("CREATE TABLE data (i BIGINT)")
        aggregate = {"name": "my_mean", "aggregator": {"built_in": "mean"}, "columns": {"col": "i"}, "args": {}}
        with self.assertRaisesRegex(ValueError, "my_mean: there is no value to aggregate"):
            one_pass(connection, [aggregate], lambda *_: None)
