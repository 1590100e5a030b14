"""Exceptions as faults: what the caller can answer with, and what the log keeps."""

import json
import traceback


class PayloadError(Exception):
    """The request's body is not what its content type says."""


class JsonError(PayloadError):
    """The body is to be JSON and is not; the gateway knows it by this name."""


def fault(stage, error):
    """An exception as the body of ERROR, INIT_FAILED or a failed delivery. Frames of the runtime itself are left out."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "quern_runtime" not in frame.filename] or frames
    lines = ["Traceback (most recent call last):\n"] + traceback.format_list(own)
    described = {
        "stage": stage,
        "type": type(error).__name__,
        "message": _text(error),
        "traceback": "".join(lines + traceback.format_exception_only(type(error), error)),
    }
    status_code = getattr(error, "status_code", None)
    if isinstance(status_code, int) and 400 <= status_code <= 599 and hasattr(error, "detail"):
        described["status_code"] = status_code
        described["detail"] = _plain(error.detail)
    return described


def encode_fault(stage, error):
    return json.dumps(fault(stage, error)).encode("utf-8", "backslashreplace")


def _text(error):
    try:
        return str(error)
    except Exception:
        return "(its message could not be read)"


def _plain(value):
    try:
        json.dumps(value)
        return value
    except (TypeError, ValueError):
        return str(value)
