"""What `payload` is, by the request's content type (decision 4.3)."""

import json
from email.message import Message
from urllib.parse import parse_qsl

from .faults import JsonError, PayloadError
from .form import parse_multipart


def parse_payload(content_type, body):
    """`content_type` is None for JSON. Raises PayloadError where the body is not what it is said to be."""
    if content_type is None:
        return parse_json(body)
    media_type, parameters = parse_content_type(content_type)
    if media_type == "text/plain":
        return _decode(body, parameters.get("charset", "utf-8"))
    if media_type == "application/x-www-form-urlencoded":
        text = _decode(body, parameters.get("charset", "utf-8"))
        return gather(parse_qsl(text, keep_blank_values=True))
    if media_type.startswith("multipart/form"):
        return gather(parse_multipart(body, parameters.get("boundary")))
    return body


def parse_json(body):
    if not body.strip():
        raise JsonError("the body is empty; send a JSON value")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise JsonError("the body is not valid JSON: %s" % error) from None


def parse_content_type(header):
    """(media type in lower case, parameters by name in lower case)."""
    message = Message()
    message["content-type"] = header
    parameters = message.get_params([], unquote=True)
    return message.get_content_type(), {name.lower(): value for name, value in parameters[1:]}


def gather(pairs):
    """Fields by name; one that came several times is a list."""
    fields = {}
    for name, value in pairs:
        if name not in fields:
            fields[name] = value
        elif isinstance(fields[name], list):
            fields[name].append(value)
        else:
            fields[name] = [fields[name], value]
    return fields


# Batches were validated when they were enqueued, so the checks of json.loads around the scanner are not repeated.
_scan = json.JSONDecoder().scan_once


def parse_batch(body):
    return _scan(body.decode(), 0)[0]


def _decode(body, charset):
    try:
        return body.decode(charset)
    except (UnicodeDecodeError, LookupError) as error:
        raise PayloadError("the body is not text in the charset %s: %s" % (charset, error)) from None
