"""The first message of a caller: who is accepted."""

from __future__ import annotations

import hmac
from typing import Any

from . import protocol

ROLES = ("gateway", "controller")


def refusal(message_type: int, hello: dict[str, Any], token: str, epoch: int) -> tuple[str, str] | None:
    """The reason for a refused connection, as a code and a text; None if it is accepted. `epoch` is the owner's."""
    if message_type != protocol.HELLO or hello.get("protocol") != protocol.PROTOCOL_VERSION:
        versions = (hello.get("protocol"), protocol.PROTOCOL_VERSION)
        return "protocol", "protocol %s is not supported, only %d" % versions
    if not hmac.compare_digest(str(hello.get("token", "")).encode(), token.encode()):
        return "token", "wrong token"
    if hello.get("role") not in ROLES:
        return "role", "a caller must be a gateway or a controller"
    if hello["role"] == "controller" and hello["epoch"] < epoch:
        return "epoch", "epoch %d is over; the owner's is %d" % (hello["epoch"], epoch)
    return None
