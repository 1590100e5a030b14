"""Answers by what predict() returned."""

import json
import types
import unittest

from quern_runtime.answers import Streamed, encode_answer, encode_text_answer
from quern_runtime.http_payload import parse_payload


class Answers(unittest.TestCase):
    def test_half_a_surrogate_pair_is_returned_as_it_came(self):
        self.assertEqual(encode_answer(parse_payload(None, b'["\\ud800"]')), (b"", b'["\\ud800"]'))

    def response(self, body, status=201, **headers):
        return types.SimpleNamespace(status_code=status, headers=headers, body=body)

    def test_bytes_are_octets_and_strings_are_json(self):
        head, body = encode_answer(b"\x00")
        self.assertEqual(
            (json.loads(head), body), ({"headers": [["content-type", "application/octet-stream"]]}, b"\x00")
        )
        self.assertEqual(encode_answer("setosa"), (b"", b'"setosa"'))

    def test_only_text_is_sent_as_text(self):
        class Label(str):
            def encode(self, *_):
                raise RuntimeError

        for value in ("\u00e9", Label("\u00e9")):
            head, body = encode_text_answer(value)
            self.assertEqual(
                (json.loads(head), body),
                ({"headers": [["content-type", "text/plain; charset=utf-8"]]}, "\u00e9".encode()),
            )
        for value in ({"a": 1}, None, 1, b"\x00", self.response("x")):
            self.assertEqual(encode_text_answer(value), encode_answer(value))
        with self.assertRaisesRegex(ValueError, "surrogate pair, at character 1"):
            encode_text_answer("a\ud800")
        streamed = encode_text_answer(iter(["a", 1]))
        self.assertEqual((streamed.head, streamed.encode("a")), ({"format": "text"}, b"a"))
        with self.assertRaisesRegex(TypeError, "may give str only, not int"):
            streamed.encode(1)

    def test_response_objects_are_sent_as_they_are(self):
        for body, sent, type_ in (
            ("x", b"x", "text/plain; charset=utf-8"),
            (b"x", b"x", "application/octet-stream"),
            ({"a": 1}, b'{"a":1}', "application/json"),
        ):
            head, encoded = encode_answer(self.response(body, a="b"))
            self.assertEqual(
                (json.loads(head), encoded), ({"status": 201, "headers": [["a", "b"], ["content-type", type_]]}, sent)
            )

    def test_starlette_and_flask_like_responses(self):
        starlette = types.SimpleNamespace(
            status_code=200,
            headers={},
            raw_headers=[(b"set-cookie", b"a"), (b"set-cookie", b"b"), (b"content-type", b"t/x")],
            body=b"1",
        )
        self.assertEqual(
            json.loads(encode_answer(starlette)[0])["headers"],
            [["set-cookie", "a"], ["set-cookie", "b"], ["content-type", "t/x"]],
        )
        flask = types.SimpleNamespace(status_code=404, headers=[("Content-Type", "t/y")], get_data=lambda: b"2")
        self.assertEqual(encode_answer(flask), (b'{"status": 404, "headers": [["Content-Type", "t/y"]]}', b"2"))

    def test_generators_are_streams(self):
        streamed = encode_answer(iter([{"a": 1}]))
        self.assertIsInstance(streamed, Streamed)
        self.assertEqual([streamed.encode(piece) for piece in streamed.pieces], [b'{"a":1}'])
        raw = encode_answer(self.response(iter(["a", b"b"])))
        self.assertEqual((raw.head["format"], [raw.encode(p) for p in raw.pieces]), ("raw", [b"a", b"b"]))


if __name__ == "__main__":
    unittest.main()
