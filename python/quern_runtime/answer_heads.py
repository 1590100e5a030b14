"""The status and the headers that a response of predict() may have. Values that HTTP does not allow are refused here,
by name.

The gateway writes them unchanged; if Node refused one there, the answer would be lost.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .shapes import HeaderPairs

# Headers of one answer, together, as JSON. Clients and proxies take 8 to 64 KiB.
HEADERS_BYTES_MAX = 64 * 1024
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
# Latin-1 without control characters, except the tab.
_BAD_IN_VALUE = re.compile("[^\t\x20-\x7e\x80-\xff]")


class HeadError(Exception):
    """The response's status or headers are invalid."""


def checked_status(status: object) -> int:
    """The status as a plain int, from 200 to 599: 1xx are no answers. Raises HeadError for any other value."""
    if not isinstance(status, int) or isinstance(status, bool) or not 200 <= status <= 599:
        raise HeadError("the response's status_code is %s; it must be an integer from 200 to 599" % _shown(status))
    return int.__int__(status)


def checked_headers(headers: HeaderPairs) -> HeaderPairs:
    """The headers, [[name, value]], as they came.

    Raises HeadError if HTTP does not allow a name or a value, if `content-length` is not one number, or if all headers
    together have over HEADERS_BYTES_MAX bytes.
    """
    for name, value in headers:
        if not _NAME.match(name):
            raise HeadError("the response has a header called %s, which is not a valid header name" % _shown(name))
        bad = _BAD_IN_VALUE.search(value)
        if bad is not None:
            raise HeadError(
                "the response's header %s has the character %s at %d; "
                "a header may have Latin-1 text without line breaks" % (name, ascii(bad.group()), bad.start())
            )
    _check_length([value for name, value in headers if name.lower() == "content-length"])
    together = len(json.dumps(headers))
    if together > HEADERS_BYTES_MAX:
        raise HeadError("the response's headers have %d bytes together; %d are allowed" % (together, HEADERS_BYTES_MAX))
    return headers


def _check_length(lengths: list[str]) -> None:
    if len(lengths) > 1 or any(re.match(r"[0-9]{1,15}\Z", length) is None for length in lengths):
        raise HeadError(
            "the response's header content-length is %s; it must be one number of bytes" % _shown(", ".join(lengths))
        )


def _shown(value: object) -> str:
    try:
        return ascii(value)[:100]
    except Exception:
        return "a %s" % type(value).__name__
