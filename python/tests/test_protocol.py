"""The fixtures that TypeScript reads too, read and written from the worker's side."""

import json
import os
import struct
import unittest

from quern_runtime import protocol

FIXTURES = os.path.join(os.path.dirname(__file__), "..", "..", "protocol", "fixtures", "messages.json")


def fixtures():
    with open(FIXTURES) as file:
        return json.load(file)


def cut(stream, step):
    """The frames of a stream that comes in pieces of this length."""
    reader, frames = protocol.FrameReader(), []
    for at in range(0, len(stream), step):
        piece = stream[at : at + step]
        reader.space()[: len(piece)] = piece
        frames += reader.filled(len(piece))
    return frames


class Fixtures(unittest.TestCase):
    def test_every_message_has_its_number_and_a_fixture(self):
        named = {name: value for name, value in vars(protocol).items() if name.isupper() and isinstance(value, int)}
        numbers = {f["message"]: f["type"] for f in fixtures()}
        messages = {n: v for n, v in named.items() if n in numbers}
        self.assertEqual(messages, numbers)

    def test_frames_are_split_correctly_wherever_the_stream_is_cut(self):
        stream = b"".join(bytes.fromhex(f["bytes"]) for f in fixtures())
        expected = [(f["type"], f["flags"], f["id"]) for f in fixtures()]
        for step in (1, 7, 64, len(stream)):
            seen = [frame[:3] for frame in cut(stream, step)]
            self.assertEqual(seen, expected, "step %d" % step)

    def test_frames_of_every_length_are_read_at_any_offset(self):
        most = protocol.FRAME_BODY_BYTES_MAX
        bodies = [
            bytes([at]) * length for at, length in enumerate([0, 1, 4095, most, 100_000, most, 3, 200_000, most, most])
        ]
        stream = b"".join(protocol.frame(protocol.CHUNK, at, body) for at, body in enumerate(bodies))
        for step in (65_536, 100_001, most):
            self.assertEqual([frame[3] for frame in cut(stream, step)], bodies)

    def test_binary_bodies_mean_what_the_fixture_says(self):
        for fixture in (f for f in fixtures() if f["form"] == "binary"):
            with self.subTest(fixture["message"]):
                content = bytes.fromhex(fixture["bytes"])
                (frame,) = cut(content, len(content))
                self.check(fixture, frame[3])

    def check(self, fixture, body):
        value = fixture["value"]
        if fixture["message"] == "LEASE":
            entries = [[fixture["id"] + i, b, p.decode()] for i, (b, p) in enumerate(protocol.decode_lease(body))]
            self.assertEqual(entries, value["deliveries"])
        elif fixture["message"] == "LEASE_PART":
            items = value["items"].encode()
            self.assertEqual(protocol.decode_lease_part(body), (value["batch_index"], value["first_item"], items))
        elif fixture["message"] == "RESULT":
            self.assertEqual(
                protocol.encode_result(value["predict_us"], value["head"].encode(), value["body"].encode()), body
            )
        elif fixture["message"] == "ACK":
            failures = [(d, json.dumps(f, separators=(",", ":")).encode()) for d, f in value["failures"]]
            sizes = [struct.pack("<II", *size) for size in value["rows"]]
            self.assertEqual(protocol.encode_ack(value["succeeded"], value["success_us"], failures, sizes), body)
        elif fixture["message"] == "RECYCLE":
            self.assertEqual(protocol.encode_u32(value["left"]), body)
        elif fixture["message"] == "RELEASE":
            self.assertEqual(protocol.encode_u32(value["last"]), body)
        else:
            self.assertEqual(protocol.decode_u32(body), value["bytes"])

    def test_an_incomplete_init_is_refused(self):
        init = {"api_id": "a", "project": "p", "path": "f.py", "api_config": "{}", "concurrency": 1}
        self.assertEqual(protocol.decode_init(json.dumps(init)), init)
        self.assertEqual(protocol.decode_init(json.dumps({**init, "job_config": None}))["job_config"], None)
        for name in init:
            with self.subTest(name), self.assertRaisesRegex(protocol.ProtocolError, "the %s of an INIT" % name):
                protocol.decode_init(json.dumps({**init, name: None}))
        for more in (
            {"threads": "1"},
            {"batching": {"max_batch_size": 2}},
            {"batching": []},
            {"monitoring": {}},
            {"job_spec": "x"},
        ):
            with self.subTest(more), self.assertRaises(protocol.ProtocolError):
                protocol.decode_init(json.dumps({**init, **more}))
        for body in ("{}", "[]", "1", "{"):
            with self.subTest(body), self.assertRaises(ValueError):
                protocol.decode_init(body)

    def test_a_body_over_the_limit_is_refused(self):
        head = protocol.HEADER.pack(protocol.FRAME_BODY_BYTES_MAX + 1, protocol.PREDICT, 0, 0, 1)
        with self.assertRaisesRegex(ValueError, "over the limit"):
            cut(head, len(head))


if __name__ == "__main__":
    unittest.main()
