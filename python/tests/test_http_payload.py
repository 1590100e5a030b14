"""Payloads by their content type."""

import io
import time
import unittest
from unittest import mock

from quern_runtime import http_payload
from quern_runtime.faults import JsonError, PayloadError
from quern_runtime.form import FIELDS_MAX
from quern_runtime.http_payload import parse_payload

BOUNDARY = "----b"
FORM = "multipart/form-data; boundary=%s" % BOUNDARY


def form(*parts):
    body = b"".join(
        b"--%s\r\n%s\r\n\r\n%s\r\n" % (BOUNDARY.encode(), head.encode(), content) for head, content in parts
    )
    return body + b"--%s--\r\n" % BOUNDARY.encode()


class Parsing(unittest.TestCase):
    def test_json_as_any_client_writes_it(self):
        for body in (b'{"a": [1]}', b' {"a": [1]}\r\n', '\ufeff{"a": [1]}'.encode(), '{"a": [1]}'.encode("utf-16")):
            with self.subTest(body=body):
                self.assertEqual(parse_payload(None, body), {"a": [1]})
        for body, error in ((b"", "is empty"), (b" \n", "is empty"), (b"1 2", "Extra data"), (b'{"a"', "delimiter")):
            with self.subTest(body=body), self.assertRaisesRegex(PayloadError, error):
                parse_payload(None, body)

    def test_text_in_its_charset(self):
        self.assertEqual(parse_payload("text/plain", "é".encode()), "é")
        for label in ("latin-1", "ISO_8859-1", "latin_1"):
            self.assertEqual(parse_payload('TEXT/plain; charset="%s"' % label, b"\xe9"), "é")
        for type_, body in (("text/plain", b"\xff"), ("text/plain; charset=nope", b"x")):
            with self.assertRaises(PayloadError):
                parse_payload(type_, body)

    def test_form_fields_and_repeated_ones(self):
        type_ = "application/x-www-form-urlencoded"
        form = parse_payload(type_, b"a=1&b=%C3%A9&a=2&c=")
        self.assertEqual(form, {"a": "2", "b": "é", "c": ""})
        self.assertEqual((form.getlist("a"), form.getlist("b"), form.getlist("d")), (["1", "2"], ["é"], []))
        self.assertEqual(form.multi_items(), [("a", "1"), ("b", "é"), ("a", "2"), ("c", "")])

    def test_files_with_their_name_type_and_content(self):
        content = bytes(range(256)) * 50 + b"\r\n--" + b"\r\n----"
        payload = parse_payload(
            FORM,
            form(
                ('Content-Disposition: form-data; name="kind"', b"iris"),
                (
                    'Content-Disposition: form-data; name="image"; filename="\u00e9 \\"x\\".png"\r\nContent-Type: image/png',
                    content,
                ),
            ),
        )
        image = payload["image"]
        self.assertEqual(payload["kind"], "iris")
        self.assertEqual(
            (image.filename, image.content_type, image.size), ('\u00e9 "x".png', "image/png", len(content))
        )
        self.assertEqual(image.read(3), content[:3])
        self.assertEqual(image.read(), content[3:])
        self.assertEqual(image.read(), b"")
        image.seek(-2, 2)
        self.assertEqual((image.tell(), image.read()), (len(content) - 2, content[-2:]))
        # As predictors for Starlette's forms read it.
        image.file.seek(0)
        self.assertEqual(image.file.read(), content)

    def test_the_lines_of_a_file(self):
        lines = [b"x" * length + b"\n" for length in (0, 1, 5000, 100_000)] + [b"no end"]
        head = 'Content-Disposition: form-data; name="a"; filename="f"'
        file = parse_payload(FORM, form((head, b"".join(lines))))["a"].file
        self.assertEqual(list(file), lines)
        file.seek(0)
        self.assertEqual((file.readline(3), file.readline(), file.tell()), (b"\n", b"x\n", 3))
        file.seek(0)
        self.assertEqual(io.TextIOWrapper(file, "utf-8").readlines(), [line.decode() for line in lines])

    def test_invalid_forms_are_refused(self):
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

    def test_names_of_fields_and_files_as_clients_write_them(self):
        for written, name in (
            ('name="a;b=c"', "a;b=c"),
            ("name=plain ; x", "plain"),
            ('NAME = "a\\\\b\\"c"; name="second"', 'a\\b"c'),
            ('name="never closed', "never closed"),
            ("name*=utf-8''%C3%A9%20b", "\u00e9 b"),
            ("name*=iso-8859-1'en'%E9", "\u00e9"),
        ):
            self.assertEqual(
                dict(parse_payload(FORM, form(("Content-Disposition: form-data; " + written, b"1")))), {name: "1"}
            )

    def test_a_field_in_a_charset_of_its_own(self):
        head = 'Content-Disposition: form-data; name="a"\r\nContent-Type: text/plain; charset=shift_jis'
        self.assertEqual(parse_payload(FORM, form((head, "\u65e5".encode("shift_jis")))), {"a": "\u65e5"})

    def test_percent_codes_are_decoded_in_bodies_of_any_length(self):
        type_ = "application/x-www-form-urlencoded"
        for shift in range(4):
            text = "x" * shift + "\u00e9" * 100_000
            body = b"a=" + b"x" * shift + b"%C3%A9" * 100_000
            self.assertEqual(parse_payload(type_, body), {"a": text})
        self.assertEqual(parse_payload(type_, b"a=%zz+%4&%C3=%ff"), {"a": "%zz %4", "\ufffd": "\ufffd"})

    def test_other_content_types_are_bytes(self):
        self.assertEqual(parse_payload("image/png", b"\x89"), b"\x89")


class Hostile(unittest.TestCase):
    """Bodies that would block a replica for minutes are refused, or read in one pass."""

    def refused(self, type_, body, seconds=2.0):
        started = time.perf_counter()
        with self.assertRaises(PayloadError) as caught:
            parse_payload(type_, body)
        self.assertLess(time.perf_counter() - started, seconds)
        return str(caught.exception)

    def test_headers_of_semicolons(self):
        semicolons = 'Content-Disposition: form-data; name="a"' + ";" * 16_000
        quotes = 'Content-Disposition: form-data; name="a' + '\\"' * 8_000
        for head in (semicolons, semicolons.replace(";;;", '; "')):
            self.assertIn("parameters", self.refused(FORM, form(*[(head, b"1")] * 900)))
        started = time.perf_counter()
        self.assertEqual(len(dict(parse_payload(FORM, form((quotes, b"1"))))), 1)
        self.assertIn("headers", self.refused(FORM, form(("X: y\r\n" * 2_000, b"1"))))
        self.assertIn("parameters", self.refused("text/plain" + ";" * 16_000, b""))
        self.assertIn("boundary", self.refused("multipart/form-data; boundary=" + "-" * 16_000, b"-" * 50_000_000))
        self.assertLess(time.perf_counter() - started, 2)

    def test_unknown_charsets(self):
        for charset in (
            "punycode",
            "idna",
            "utf-7",
            "unicode_escape",
            "raw_unicode_escape",
            "rot13",
            "bz2",
            "zlib",
            "hex",
            "base64",
            "uu",
            "mbcs",
            "undefined",
            "os",
            "../x",
            "utf-8\x00",
            "",
        ):
            for type_ in ("text/plain; charset=%s", "application/x-www-form-urlencoded; charset=%s"):
                self.assertIn("not supported", self.refused(type_ % charset, b"a-" * 200_000))
            part = 'Content-Disposition: form-data; name="a"\r\nContent-Type: text/plain; charset=%s' % charset
            self.assertIn("not supported", self.refused(FORM, form((part, b"a-" * 200_000))))
            self.assertIn(
                "not supported",
                self.refused(FORM, form(("Content-Disposition: form-data; name*=%s''a" % (charset or "x"), b""))),
            )

    def test_text_that_its_charset_cannot_encode(self):
        for charset in ("utf-8", "ascii", "utf-16", "utf-32", "iso-2022-jp", "gb18030", "euc-kr", "big5"):
            self.assertIn("is not text", self.refused("text/plain; charset=" + charset, b"\xff\xff\xff"))

    def test_forms_of_many_fields(self):
        self.assertIn("fields", self.refused("application/x-www-form-urlencoded", b"&".join([b"a"] * 5_000_000)))
        most = b"&".join([b"a=1"] * FIELDS_MAX)
        self.assertEqual(parse_payload("application/x-www-form-urlencoded", most).getlist("a"), ["1"] * FIELDS_MAX)
        self.refused("application/x-www-form-urlencoded", most + b"&")

    def test_json_that_is_too_deep_or_has_an_integer_with_a_million_digits(self):
        for body in (b"[" * 5_000_000, b'{"a":' * 1_000_000, b"1" * 5_000_000, b"[-" + b"9" * 4_301 + b"]"):
            with self.assertRaises(JsonError):
                parse_payload(None, body)
        # Pythons that read integers of any length.
        with mock.patch.object(http_payload, "_parse_int", http_payload._bounded_int), self.assertRaises(JsonError):
            parse_payload(None, b"[-" + b"9" * 4_301 + b"]")
        with mock.patch.object(http_payload, "_parse_int", http_payload._bounded_int):
            self.assertEqual(parse_payload(None, b"[12, -3.5]"), [12, -3.5])
