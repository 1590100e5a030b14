"""The methods and arguments that a PythonPredictor may have (docs/contract/predictor.md#predictor-arguments).

One table, used on the live class and on its syntax tree.
"""

from __future__ import annotations

REQUIRED: dict[str, tuple[str, ...]] = {"__init__": ("self", "config"), "predict": ("self",)}
OPTIONAL = {
    "__init__": ("job_spec",),
    "predict": ("payload", "query_params", "headers", "batch_id", "job_spec"),
    "post_predict": ("self", "response", "payload", "query_params", "headers"),
    "on_job_complete": ("self", "job_spec"),
}
METHODS = ("__init__", "predict", "post_predict", "on_job_complete")


def signature_errors(method: str, names: list[str], names_with_default: set[str]) -> list[str]:
    """Messages for one method; `names` are its parameters in order, without *args and **kwargs."""
    required = REQUIRED.get(method, ())
    legal = required + OPTIONAL[method]
    where = 'method "%s(%s)"' % (method, ", ".join(names))
    errors = []
    for name in required:
        if name not in names:
            errors.append('%s: "%s" is a required argument, but is missing' % (where, name))
    for name in names:
        if name not in legal and name not in names_with_default:
            errors.append('%s: "%s" %s' % (where, name, _way_out(name, legal)))
    return errors


def _way_out(name: str, legal: tuple[str, ...]) -> str:
    # Not imported by workers whose class is right.
    from .former import FORMER_ARGUMENTS

    supported = "is not a supported argument; supported: %s (others need a default value)" % ", ".join(legal)
    return FORMER_ARGUMENTS.get(name, supported)
