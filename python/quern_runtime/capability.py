"""The capability in QUERN_API_URL: a secret, hidden in what the runtime writes or sends for user code.

Errors of HTTP clients have the whole address in their texts, and so do the lines that such clients log.
"""

from __future__ import annotations

import os

_SECRET = ""
# As src/contracts/secrets.ts writes it.
HIDDEN = "quern_***"


def learn() -> None:
    """Reads it from the environment."""
    global _SECRET
    _SECRET = os.environ.get("QUERN_API_URL", "").rpartition("/")[2]


def hide(text: str) -> str:
    """The text with HIDDEN instead of the secret."""
    return text.replace(_SECRET, HIDDEN) if _SECRET and _SECRET in text else text


learn()
