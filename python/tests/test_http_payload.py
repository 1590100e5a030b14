"""Payloads by content type, and answers by what was returned."""

import json
import types
import unittest

from quern_runtime.answers import Streamed, encode_answer
from quern_runtime.faults import PayloadError
from quern_runtime.http_payload import parse_payload

BOUNDARY = "----b"
FORM = "multipart/form-data; boundary=%s" % BOUNDARY


def form(*parts):
    body = b"".join(b"--%s\r\n%s\r\n\r\n%s\r\n" % (BOUNDARY.encode(), head.encode(), content) for head, content in parts)
    return body + b"--%s--\r\n" % BOUNDARY.encode()


class Parsing(unittest.TestCase):
    def test_text_in_its_charset(self):
        self.assertEqual(parse_payload("text/plain", "é".encode()), "é")
        self.assertEqual(parse_payload('TEXT/plain; charset="latin-1"', b"\xe9"), "é")
        for type_, body in (("text/plain", b"\xff"), ("text/plain; charset=nope", b"x")):
            with self.assertRaises(PayloadError):
                parse_payload(type_, body)

    def test_form_fields_and_repeated_ones(self):
        type_ = "application/x-www-form-urlencoded"
        self.assertEqual(parse_payload(type_, b"a=1&b=%C3%A9&a=2&c="), {"a": ["1", "2"], "b": "é", "c": ""})

    def test_files_with_their_name_type_and_content(self):
        content = bytes(range(256)) * 50 + b"\r\n--" + b"\r\n----"
        payload = parse_payload(
            FORM,
            form(
                ('Content-Disposition: form-data; name="kind"', b"iris"),
                ('Content-Disposition: form-data; name="image"; filename="\u00e9 \\"x\\".png"\r\nContent-Type: image/png', content),
            ),
        )
        image = payload["image"]
        self.assertEqual(payload["kind"], "iris")
        self.assertEqual((image.filename, image.content_type, image.size), ('\u00e9 "x".png', "image/png", len(content)))
        self.assertEqual(image.read(3), content[:3])
        self.assertEqual(image.read(), content[3:])
        self.assertEqual(image.read(), b"")
        image.seek(-2, 2)
        self.assertEqual((image.tell(), image.read()), (len(content) - 2, content[-2:]))

    def test_forms_that_are_no_forms_are_refused(self):
        whole = form(('Content-Disposition: form-data; name="a"', b"1"))
        for type_, body in (
            ("multipart/form-data", whole),
            (FORM, b""),
            (FORM, whole[:-12]),
            (FORM, form(("X: y", b"1"))),
            (FORM, form(*[('Content-Disposition: form-data; name="a"', b"1")] * 1001)),
        ):
            with self.assertRaises(PayloadError):
                dict(parse_payload(type_, body))

    def test_every_cut_of_a_form_is_refused_and_none_hangs(self):
        whole = form(('Content-Disposition: form-data; name="a"; filename="f"', b"content"))
        for end in range(len(whole) - 4):
            with self.assertRaises(PayloadError):
                parse_payload(FORM, whole[:end])

    def test_anything_else_is_bytes(self):
        self.assertEqual(parse_payload("image/png", b"\x89"), b"\x89")


class Answers(unittest.TestCase):
    def response(self, body, status=201, **headers):
        return types.SimpleNamespace(status_code=status, headers=headers, body=body)

    def test_bytes_are_octets_and_strings_are_json(self):
        head, body = encode_answer(b"\x00")
        self.assertEqual((json.loads(head), body), ({"headers": [["content-type", "application/octet-stream"]]}, b"\x00"))
        self.assertEqual(encode_answer("setosa"), (b"", b'"setosa"'))

    def test_response_objects_are_sent_as_they_are(self):
        for body, sent, type_ in (("x", b"x", "text/plain; charset=utf-8"), (b"x", b"x", "application/octet-stream"), ({"a": 1}, b'{"a":1}', "application/json")):
            head, encoded = encode_answer(self.response(body, a="b"))
            self.assertEqual((json.loads(head), encoded), ({"status": 201, "headers": [["a", "b"], ["content-type", type_]]}, sent))

    def test_starlette_and_flask_like_responses(self):
        starlette = types.SimpleNamespace(status_code=200, headers={}, raw_headers=[(b"set-cookie", b"a"), (b"set-cookie", b"b"), (b"content-type", b"t/x")], body=b"1")
        self.assertEqual(json.loads(encode_answer(starlette)[0])["headers"], [["set-cookie", "a"], ["set-cookie", "b"], ["content-type", "t/x"]])
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
