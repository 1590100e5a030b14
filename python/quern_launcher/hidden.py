"""Hides secrets in what the pod prints and tells: a part of src/contracts/secrets.ts, for what installers print."""

from __future__ import annotations

import re

HIDDEN = "***"
# The user, and perhaps a password, before the @ of a URL.
_USER_OF_URL = re.compile(r"""://(?:[^\s/?#"'<>]+|[^\s/?#:@"'<>]*:(?!\d*[/?#])(?:(?!://)[^\s"'<>]){1,256})@""")
_PARAMETER = re.compile(
    r"""([?&;](?:signature|sig|token|access_token|api_key|apikey|password|client_secret|x-amz-(?:signature|credential|"""
    r"""security-token)|x-goog-(?:signature|credential))=)[^&#\s"'<>]+""",
    re.IGNORECASE,
)
_OWN_KEY = re.compile(r"\bquern_[\w-]{32}")


def hide(text: str) -> str:
    """Without the secrets of addresses, and without Quern's keys."""
    text = _USER_OF_URL.sub("://%s@" % HIDDEN, text)
    return hide_own_keys(_PARAMETER.sub(r"\g<1>%s" % HIDDEN, text))


def hide_own_keys(text: str) -> str:
    """Changes nothing else: for the output of user code."""
    return _OWN_KEY.sub("quern_%s" % HIDDEN, text)
