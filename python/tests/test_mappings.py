"""The headers, query and form that user code gets."""

import copy
import json
import pickle
import unittest

from quern_runtime.mappings import Headers, MultiDict, argument


class HeadersOfRequests(unittest.TestCase):
    headers = Headers({"x-mine": "1", "x-two": "a, b"}, {"x-two": ["a", "b"]})

    def test_names_are_found_in_any_case(self):
        for name in ("x-mine", "X-Mine", "X-MINE"):
            self.assertEqual((self.headers[name], self.headers.get(name), name in self.headers), ("1", "1", True))
        self.assertEqual(
            (self.headers.get("X-Other"), self.headers.get("X-Other", "d"), "X-Other" in self.headers),
            (None, "d", False),
        )
        self.assertEqual((self.headers.get(1), 1 in self.headers), (None, False))
        with self.assertRaisesRegex(KeyError, "X-Other"):
            self.headers["X-Other"]

    def test_a_repeated_header_has_its_values_joined_and_separately(self):
        self.assertEqual((self.headers["X-Two"], self.headers.getlist("X-Two")), ("a, b", ["a", "b"]))
        self.assertEqual((self.headers.getlist("X-Mine"), self.headers.getlist("x-other")), (["1"], []))

    def test_headers_that_user_code_sets_are_found(self):
        headers = Headers({"a": "1"})
        headers["X-New"] = "2"
        self.assertEqual((headers["X-New"], headers.get("X-New"), "X-New" in headers), ("2", "2", True))


class Fields(unittest.TestCase):
    def test_a_repeated_field_has_its_last_value_and_all_values(self):
        query = argument("query_params", {"query_params": [["a", "1"], ["b", ""], ["a", "2"]]})
        self.assertEqual((query["a"], query.get("c", "d"), query), ("2", "d", {"a": "2", "b": ""}))
        self.assertEqual((query.getlist("a"), query.getlist("c")), (["1", "2"], []))
        self.assertEqual(query.multi_items(), [("a", "1"), ("b", ""), ("a", "2")])


class Dicts(unittest.TestCase):
    def test_mappings_are_serialized_copied_and_pickled_as_dicts(self):
        for mapping, name in (
            (Headers({"a": "1, 2"}, {"a": ["1", "2"]}), "A"),
            (MultiDict([("a", "1"), ("a", "2")]), "a"),
        ):
            self.assertEqual(json.loads(json.dumps(mapping)), dict(mapping))
            for other in (copy.copy(mapping), copy.deepcopy(mapping), pickle.loads(pickle.dumps(mapping))):
                self.assertEqual((other, other.getlist(name)), (mapping, ["1", "2"]))


if __name__ == "__main__":
    unittest.main()
