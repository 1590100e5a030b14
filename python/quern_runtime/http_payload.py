"""Payloads and predictions as JSON, and exceptions as faults that the caller can answer with."""

import json
import traceback


class PayloadError(Exception):
    """The request's body is not what its content type says."""


def parse_payload(body):
    if not body.strip():
        raise PayloadError("the body is empty; send a JSON value")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise PayloadError("the body is not valid JSON: %s" % error) from None


# Batches were validated when they were enqueued, so the checks of json.loads around the scanner are not repeated.
_scan = json.JSONDecoder().scan_once


def parse_batch(body):
    return _scan(body.decode(), 0)[0]


def _from_numpy(value):
    convert = getattr(value, "tolist", None)
    if convert is not None and type(value).__module__.split(".")[0] == "numpy":
        return convert()
    raise TypeError("a value of type %s is not JSON serializable" % type(value).__name__)


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_from_numpy).encode


def encode_prediction(value):
    """The prediction as JSON bytes; raises TypeError or ValueError naming what cannot be written."""
    if hasattr(value, "__next__"):
        raise TypeError("predict() returned a generator; streamed predictions are not supported yet")
    return _encode(value).encode()


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
