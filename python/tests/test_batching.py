"""server_side_batching: when batches are formed, and that every answer goes to its own request."""

import contextlib
import io
import json
import random
import tempfile
import unittest

from quern_runtime import protocol
from quern_runtime.batching import Batching
from quern_runtime.load_predictor import Predictor
from quern_runtime.note import Note
from quern_runtime.predictions import Predictions


class Forming(unittest.TestCase):
    def test_a_single_request_does_not_wait_on_an_idle_worker(self):
        batching = Batching(4, 1.0)
        batching.add("a", 0)
        self.assertEqual(batching.take(0, is_idle=True), ["a"])
        batching.add("b", 0)
        self.assertIsNone(batching.take(0.5, is_idle=False))
        self.assertEqual(batching.take(1.0, is_idle=False), ["b"])

    def test_several_requests_wait_until_the_batch_is_full_or_the_interval_ends(self):
        batching = Batching(3, 1.0)
        batching.add("a", 0)
        batching.add("b", 0.5)
        self.assertIsNone(batching.take(0.6, is_idle=True))
        self.assertAlmostEqual(batching.due_in(0.6), 0.4)
        batching.add("c", 0.7)
        batching.add("d", 0.7)
        self.assertEqual(batching.take(0.7, is_idle=True), ["a", "b", "c"])
        self.assertEqual(batching.take(0.7, is_idle=True), ["d"])

    def test_a_cancelled_request_is_not_in_the_batch(self):
        batching = Batching(2, 1.0)
        one, two = object(), object()
        batching.add(one, 0)
        batching.add(two, 0)
        self.assertTrue(batching.remove(one))
        self.assertFalse(batching.remove(one))
        self.assertEqual(batching.take(0, is_idle=True), [two])


class FakeConnection:
    """Replaces a socket, and records sent messages."""

    number = 1

    def __init__(self):
        self.begun_up_to = 0
        self.sent = {}

    def send(self, message_type, message_id, body):
        assert message_id not in self.sent, "answered twice"
        self.sent[message_id] = (message_type, body)


class Doubling:
    """Doubles numbers; raises, answers with an exception, or returns too few, as the payloads say."""

    def predict(self, payload):
        if "explode" in payload:
            raise ValueError("boom")
        values = [ValueError("mine") if value == "fail" else [value] * 2 for value in payload]
        return values[:-1] if "short" in payload else values


class Names(unittest.TestCase):
    def test_the_log_names_each_request_of_a_batch_that_failed(self):
        for count, expected in ((3, "requests r0, r1, r2 failed"), (24, "r18, r19 and 4 more failed")):
            predictions = Predictions(Note(tempfile.mktemp()), lambda: None, lambda: None, lambda left: None)
            init = {"concurrency": 100, "batching": {"max_batch_size": count, "interval_ms": 1000}}
            predictions.set_up(Predictor(Doubling()), init)
            for at in range(count):
                predictions.take(FakeConnection(), at + 1, b"r%d" % at, None, b'"explode"')
            with contextlib.redirect_stderr(io.StringIO()) as log:
                predictions.work(1 << 62)
            self.assertIn(expected + "\nTraceback", log.getvalue())


class Property(unittest.TestCase):
    def test_answers_reach_their_requests_despite_cancels_and_errors(self):
        for seed in range(300):
            with self.subTest(seed=seed), contextlib.redirect_stderr(io.StringIO()):
                self.run_one(random.Random(seed))

    def run_one(self, rng):
        connection = FakeConnection()
        predictions = Predictions(Note(tempfile.mktemp()), lambda: None, lambda: None, lambda left: None)
        init = {"concurrency": 1000, "batching": {"max_batch_size": rng.randint(2, 8), "interval_ms": 0.001}}
        predictions.set_up(Predictor(Doubling()), init)
        payloads, cancelled = {}, set()
        for message_id in range(1, 60):
            payload = rng.choice(["fail", "short", "explode", "{"] if rng.random() < 0.15 else [message_id])
            payloads[message_id] = payload
            body = b"{" if payload == "{" else json.dumps(payload).encode()
            predictions.take(connection, message_id, b"", None, body)
            if rng.random() < 0.2:
                gone = rng.randint(1, message_id)
                if gone not in connection.sent:
                    cancelled.add(gone)
                predictions.cancel(connection, gone)
            if rng.random() < 0.3:
                predictions.work(1 << 62)
        while len(connection.sent) < len(payloads):
            predictions.work(1 << 62)
        for message_id, (message_type, body) in connection.sent.items():
            payload = payloads[message_id]
            if message_id in cancelled:
                self.assertEqual(message_type, protocol.BUSY)
            elif message_type == protocol.RESULT:
                self.assertEqual(json.loads(body[8:]), [payload] * 2)
            else:
                fault = json.loads(body)
                expected = "payload" if payload == "{" else "predict"
                self.assertEqual((message_type, fault["stage"]), (protocol.ERROR, expected))
        self.assertTrue(predictions.is_settled)


if __name__ == "__main__":
    unittest.main()
