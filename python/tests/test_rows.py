"""The rows that a batch gives its job's output."""

import json
import unittest

from quern_runtime import rows
from quern_runtime.rows import encode_rows


def read(encoded):
    """How many rows it says that there are, and the rows."""
    count, lines = encoded
    return count, [json.loads(line) for line in lines.decode().splitlines()]


class Array:
    """An array with the attributes of numpy's."""

    def __init__(self, values):
        self.values = values
        self.shape = (len(values),) if isinstance(values, list) else ()

    def tolist(self):
        return self.values


Array.__module__ = "numpy"


class Rows(unittest.TestCase):
    def test_one_prediction_an_item_is_one_row_an_item(self):
        for value in ([1, {"a": "é"}], (1, {"a": "é"}), Array([1, {"a": "é"}])):
            with self.subTest(value):
                count, lines = read(encode_rows(7, 0, 2, value))
                self.assertEqual(count, 2)
                self.assertEqual(
                    lines,
                    [
                        {"batch_index": 7, "item_index": 0, "prediction": 1},
                        {"batch_index": 7, "item_index": 1, "prediction": {"a": "é"}},
                    ],
                )

    def test_everything_else_is_one_row_a_batch(self):
        for value in (None, "ab", {"a": 1, "b": 2}, [1], [1, 2, 3], 1.5, True, Array(3), [], Array([1])):
            with self.subTest(value):
                plain = value.tolist() if isinstance(value, Array) else value
                self.assertEqual(read(encode_rows(3, 0, 2, value)), (1, [{"batch_index": 3, "prediction": plain}]))

    def test_a_value_that_is_not_one_an_item_is_refused_with_the_cure_where_that_is_needed(self):
        self.assertEqual(encode_rows(3, 0, 2, ["a", "b"], True)[0], 2)
        for value, message in (([1], "list of 1 for 2 items"), ({}, "dict"), (None, "NoneType"), ("ab", "str")):
            with self.subTest(value), self.assertRaisesRegex(rows.ValuesError, message + ".*one value an item"):
                encode_rows(3, 0, 2, value, True)

    def test_items_are_numbered_from_the_first_of_the_call(self):
        _, lines = read(encode_rows(3, 40, 2, ["a", "b"]))
        self.assertEqual([line["item_index"] for line in lines], [40, 41])

    def test_a_row_is_one_line_in_its_fixed_form(self):
        self.assertEqual(
            encode_rows(12, 0, 1, ["a\nb"]), (1, b'{"batch_index":12,"item_index":0,"prediction":"a\\nb"}\n')
        )
        self.assertEqual(encode_rows(12, 0, 1, "x\u2028"), (1, '{"batch_index":12,"prediction":"x\u2028"}\n'.encode()))

    def test_half_a_surrogate_pair_is_escaped(self):
        _, lines = encode_rows(0, 0, 2, ["\ud800", "ü"])
        self.assertEqual([json.loads(line)["prediction"] for line in lines.splitlines()], ["\ud800", "ü"])

    def test_what_json_cannot_hold_is_refused_with_the_cure(self):
        for value, message in (
            ([b"x"], "returned bytes.*base64"),
            (b"x", "returned bytes.*base64"),
            ([float("nan")], "JSON"),
            ([float("inf")], "JSON"),
            ([object()], "type object is not JSON serializable"),
            ([{(1, 2): 3}], "keys must be str"),
        ):
            with self.subTest(value), self.assertRaisesRegex((TypeError, ValueError), message):
                encode_rows(0, 0, 1, value)

    def test_a_value_that_contains_itself_is_refused(self):
        value = []
        value.append(value)
        with self.assertRaises((ValueError, RecursionError)):
            encode_rows(0, 0, 1, value)

    def test_too_many_bytes_are_refused_with_the_cure(self):
        limit = rows.ROWS_BYTES_MAX
        rows.ROWS_BYTES_MAX = 100
        self.addCleanup(setattr, rows, "ROWS_BYTES_MAX", limit)
        self.assertEqual(encode_rows(0, 0, 1, "x" * 66)[0], 1)
        with self.assertRaisesRegex(ValueError, "fewer items a batch"):
            encode_rows(0, 0, 1, "x" * 67)


if __name__ == "__main__":
    unittest.main()
