"""Whatever user code raises or returns becomes a short fault that every JSON parser reads."""

import json
import unittest
from unittest import mock

from quern_runtime import answers, capability, faults, protocol
from quern_runtime.answer_heads import HeadError
from quern_runtime.monitoring import CLASSES_MAX, Monitor


def nest(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


class Rude(str):
    """A str whose own methods lie."""

    def encode(self, *arguments):
        return "no bytes"

    def __str__(self):
        return Rude("rude")

    def __len__(self):
        raise ValueError("no length")


def raised(error):
    try:
        raise error
    except BaseException as caught:
        return caught


def http(detail, status_code=422):
    error = ValueError("invalid")
    error.status_code, error.detail = status_code, detail
    return error


class Unprintable(Exception):
    def __str__(self):
        raise KeyboardInterrupt


class NoAttributes(Exception):
    def __getattribute__(self, name):
        raise RuntimeError("no %s for you" % name)


class BadStatus(Exception):
    detail = "here"

    @property
    def status_code(self):
        raise SystemExit("no status")


class BadDetail(Exception):
    status_code = 400

    @property
    def detail(self):
        raise RuntimeError("no detail")


class Faults(unittest.TestCase):
    def encoded(self, error):
        """As strict readers read it."""

        def refuse(constant):
            raise AssertionError("%s is no JSON" % constant)

        encoded = faults.encode(faults.fault("predict", raised(error)))
        self.assertLess(len(encoded), protocol.ACK_PARTS_BYTES_MAX // 2)
        return json.loads(encoded.decode(), parse_constant=refuse)

    def test_texts_have_a_limit_in_encoded_bytes_and_say_that_they_were_cut(self):
        for text in ("x" * 600_000, "й" * 260_000, "😀" * 300_000, '"\\' * 300_000, "\ud800" * 100_000):
            described = self.encoded(ValueError(text))
            message, traceback = described["message"], described["traceback"]
            self.assertTrue(message.startswith(text[:100]))
            self.assertIn("cut: %d characters" % len(text), message)
            self.assertTrue(traceback.startswith("Traceback (most recent call last)"))
            self.assertTrue(traceback.endswith(text[-10:] + "\n"))
            self.assertIn("cut: ", traceback)
            for value, most in (
                (message, faults.FAULT_MESSAGE_BYTES_MAX),
                (traceback, faults.FAULT_TRACEBACK_BYTES_MAX),
            ):
                self.assertLessEqual(len(json.dumps(value)) - 2, most)
                self.assertGreater(len(json.dumps(value)), most - 200)

    def test_short_texts_stay_as_they_are(self):
        described = self.encoded(ValueError("é\n"))
        self.assertEqual((described["type"], described["message"]), ("ValueError", "é\n"))
        self.assertNotIn("cut", described["traceback"])

    def test_every_detail_becomes_plain_json(self):
        cases = [
            ({"field": "age"}, {"field": "age"}),
            ({1: None, "a": (1, 2)}, {"1": None, "a": [1, 2]}),
            (float("nan"), "nan"),
            ({"x": float("inf")}, "{'x': inf}"),
            ({1, 2}, "{1, 2}"),
            (Rude("text"), "text"),
            ("\ud800", "\ud800"),
            ({(1, 2): 3}, "{(1, 2): 3}"),
        ]
        for detail, expected in cases:
            with self.subTest(repr(detail)):
                self.assertEqual(self.encoded(http(detail))["detail"], expected)
        for detail in (nest(100_000), nest(500), 10**10_000, {"x": 10**10_000}):
            self.assertIsInstance(self.encoded(http(detail))["detail"], str)
        self.assertEqual(self.encoded(http(nest(50)))["detail"], nest(50))

    def test_the_capability_of_this_process_is_in_no_text_of_a_fault(self):
        secret = "quern_" + "s" * 32
        with mock.patch.object(capability, "_SECRET", secret):
            for detail in ("at %s/a" % secret, {"url": secret}, {1, secret}):
                error = http(detail)
                error.args = ("404 for http://127.0.0.1:1/%s/a" % secret,)
                text = json.dumps(self.encoded(error))
                self.assertNotIn(secret, text)
                self.assertIn("http://127.0.0.1:1/quern_***/a", text)

    def test_a_long_detail_is_the_beginning_of_its_json(self):
        for detail in (["й" * 1000] * 1000, "x" * 1_000_000):
            cut = self.encoded(http(detail))["detail"]
            self.assertIsInstance(cut, str)
            self.assertIn("cut: ", cut)
            self.assertLessEqual(len(json.dumps(cut)) - 2, faults.FAULT_DETAIL_BYTES_MAX)

    def test_misbehaving_exceptions_are_still_faults(self):
        for error in (
            Unprintable(),
            NoAttributes(),
            BadStatus("x"),
            BadDetail("x"),
            type("X" * 10_000, (Exception,), {})(),
        ):
            with self.subTest(type(error).__name__[:20]):
                described = self.encoded(error)
                self.assertNotIn("detail", described)
                self.assertTrue(described["traceback"])
        self.assertEqual(self.encoded(ValueError(Rude("said")))["message"], "rude")
        for status_code in (True, 200, 600, "400", float("nan")):
            self.assertNotIn("status_code", self.encoded(http("x", status_code)))


class Response:
    def __init__(self, body=b"x", status_code=200, headers=None):
        self.body, self.status_code, self.headers = body, status_code, headers or {}


class Answers(unittest.TestCase):
    def test_headers_and_statuses_that_http_does_not_allow_are_named(self):
        for headers, named in (
            ({"x-a": "1\r\nset-cookie: b"}, "x-a"),
            ({"x-b": "–"}, "x-b"),
            ({"x-c": "\x00"}, "x-c"),
            ({"x d": "1"}, "'x d'"),
            ({"": "1"}, "''"),
            ({"content-length": "ten"}, "content-length"),
            ({"x-e": "e" * 100_000}, "bytes together"),
        ):
            for body in (b"x", iter([b"x"])):
                with self.assertRaisesRegex(HeadError, named):
                    answers.encode_answer(Response(body, 200, headers))
        for status in (100, 199, 600, 0, -1, True, "200", 200.5, None):
            with self.assertRaisesRegex(HeadError, "status_code"):
                answers.encode_answer(Response(b"x", status))
        head, _ = answers.encode_answer(Response(b"x", 299, {"x": "é\t~"}))
        self.assertEqual(json.loads(head)["status"], 299)

    def test_bytes_and_texts_with_methods_of_their_own_are_sent_as_they_are(self):
        class Lying(bytes):
            def __len__(self):
                return 1

            def __bytes__(self):
                return b"other"

        for body, sent in ((Lying(b"true"), b"true"), (Rude("text"), b"text")):
            for encoded in (answers.encode_answer(Response(body))[1], answers._raw_piece(body)):
                self.assertEqual((type(encoded), encoded), (bytes, sent))


class Monitoring(unittest.TestCase):
    def test_many_elements_are_counted_together_so_that_heads_stay_small(self):
        observed = Monitor("classification", None).observe(["c%d" % (n % 1000) + "x" * 300 for n in range(100_000)])
        counts = observed["class_counts"]
        self.assertEqual((len(counts), sum(count for _, count in counts)), (CLASSES_MAX + 1, 100_000))
        self.assertLess(len(json.dumps(observed)), 40_000)
        observed = Monitor("regression", None).observe([1e308] * 500 + [-2])
        self.assertEqual({**observed["value_sum"], "sum": 0}, {"count": 501, "sum": 0, "least": -2, "most": 1e308})
        json.dumps(observed, allow_nan=False)

    def test_monitoring_never_fails_a_request(self):
        class Evil(dict):
            def __contains__(self, key):
                raise SystemExit

        class Lying(float):
            def __sub__(self, other):
                return 0

        self.assertEqual(Monitor("regression", "key").observe(Evil()), {})
        for value in (Lying("nan"), 10**400, float("inf")):
            self.assertEqual(Monitor("regression", None).observe(value), {})
        self.assertEqual(Monitor("classification", None).observe(10**10_000), {})


if __name__ == "__main__":
    unittest.main()
