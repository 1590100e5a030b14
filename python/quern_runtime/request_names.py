"""How the log names requests: by the X-Request-Id that their callers got, so that one can be found from the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .calls import Request

# A batch may have thousands of requests, and a traceback is to be read.
NAMES_MAX = 20


def named(requests: Sequence[Request]) -> str:
    """`request ID`, or `requests ID, ID, ... and N more`."""
    ids = [request.request_id.decode("ascii", "replace") for request in requests[:NAMES_MAX]]
    more = " and %d more" % (len(requests) - NAMES_MAX) if len(requests) > NAMES_MAX else ""
    return ("%s %s%s" % ("request" if len(requests) == 1 else "requests", ", ".join(ids), more)).rstrip()
