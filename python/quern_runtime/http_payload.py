"""Parses the `payload` by the request's content type (docs/contract/predictor.md#payload-by-content-type)."""

from __future__ import annotations

import json
import sys
from typing import Any

from .charsets import decode
from .faults import JsonError
from .form import parse_multipart, parse_urlencoded
from .header_values import parse_header_value
from .mappings import MultiDict

# Python's own limit since 3.9.14, 3.10.7 and 3.11: reading more digits takes the square of their number.
INT_DIGITS_MAX = 4300


def parse_payload(content_type: str | None, body: bytes) -> Any:
    """The `payload` of predict(). `content_type` is None for JSON.

    - JSON: its value
    - `text/plain`, and what names no type: str
    - a form: MultiDict of its fields, whose values are str, or UploadedFile for a file
    - everything else: bytes

    Raises PayloadError if the body is not what its content type says; JsonError if it is to be JSON.
    """
    if content_type is None:
        return parse_json(body)
    media_type, parameters = parse_header_value(content_type)
    charset = parameters.get("charset", "utf-8")
    # A part without a type is text (RFC 2045, section 5.2).
    if media_type == "text/plain" or media_type.count("/") != 1:
        return decode(body, charset, "the body")
    if media_type == "application/x-www-form-urlencoded":
        return MultiDict(list(parse_urlencoded(body, charset)))
    if media_type.startswith("multipart/form"):
        return MultiDict(list(parse_multipart(body, parameters.get("boundary"))))
    return body


def parse_json(body: bytes) -> Any:
    """The value. Raises JsonError if the body is empty or not JSON."""
    try:
        text = body.decode()
        value, end = _scan(text, 0)
        if end == len(text) or not text[end:].strip(" \t\n\r"):
            return value
    except (StopIteration, ValueError, RecursionError):
        pass
    return _parse_unusual(body)


def _parse_unusual(body: bytes) -> Any:
    """JSON in UTF-16 or UTF-32, after a byte order mark or blanks; and the errors of what is not JSON.

    json.loads looks for all of these first, which takes longer than to parse a short body.
    """
    if not body.strip():
        raise JsonError("the body is empty; send a JSON value")
    try:
        return json.loads(body, parse_int=_parse_int)
    except (ValueError, RecursionError) as error:
        raise JsonError("the body is not valid JSON: %s" % error) from None


def _bounded_int(text: str) -> int:
    if len(text) > INT_DIGITS_MAX:
        raise ValueError("an integer has over %d digits" % INT_DIGITS_MAX)
    return int(text)


# None selects the parser's own function, which is faster.
_parse_int = None if hasattr(sys, "set_int_max_str_digits") else _bounded_int

# Batches were validated when they were enqueued, so the checks of json.loads around the scanner are not repeated.
_scan = json.JSONDecoder(parse_int=_parse_int).scan_once  # type: ignore[attr-defined]


def parse_batch(body: bytes) -> Any:
    """The payload of a batch: a list of items, or whatever the job's input says. It is known to be JSON."""
    return _scan(body.decode(), 0)[0]
