"""The values that a prediction adds to the counts (`monitoring` of the configuration). This never fails a request."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from .faults import cut
from .forks import leave_if_child
from .log_stream import report

if TYPE_CHECKING:
    from .shapes import Head

# More elements are counted together here, so that the head of an answer stays small.
APART_MAX = 64
# Classes of one answer that are counted together by name; the rest are `(others)`. The gateway has the same limit
# (contracts/limits/predictions.ts).
CLASSES_MAX = 100
CLASS_BYTES_MAX = 256
OTHERS = "(others)"

# Beyond this an integer is infinite as a number, and Python refuses to write some of them.
_INT_BITS_MAX = 1023


class Monitor:
    """`model_type` is `classification` or `regression`; `key` picks a field of an object; arrays count by element."""

    def __init__(self, model_type: str, key: str | None) -> None:
        self._is_classification = model_type == "classification"
        self._key = key
        self._told: set[str] = set()

    def observe(self, prediction: Any) -> Head:
        """{"classes": [text…]} or {"values": [number…]} of the values that could be counted; {} if there are none.

        For many elements {"class_counts": [[text, count]…]} or {"value_sum": {count, sum, least, most}}.
        """
        try:
            return self._observe(prediction)
        except BaseException as error:
            leave_if_child(error)
            return self._tell("reading it raised a %s" % type(error).__name__) or {}

    def _observe(self, prediction: Any) -> Head:
        if _is_numpy(prediction):
            prediction = prediction.tolist()
        elements = prediction if isinstance(prediction, (list, tuple)) else [prediction]
        counted = [value for value in map(self._observe_one, elements) if value is not None]
        if not counted:
            return {}
        if len(counted) <= APART_MAX:
            return {"classes" if self._is_classification else "values": counted}
        return (
            {"class_counts": _class_counts(counted)} if self._is_classification else {"value_sum": _value_sum(counted)}
        )

    def _observe_one(self, element: Any) -> Any:
        if self._key is not None:
            if not isinstance(element, dict) or self._key not in element:
                return self._tell('it has no field "%s"' % self._key)
            element = element[self._key]
        if _is_numpy(element):
            element = element.tolist()
        if isinstance(element, int) and element.bit_length() > _INT_BITS_MAX:
            return self._tell("an integer of %d bits is too large to count" % element.bit_length())
        if self._is_classification:
            if isinstance(element, (str, int)) and not isinstance(element, bool):
                return cut(str.__str__(str(element)), CLASS_BYTES_MAX)
            return self._tell("a class must be a str or an int, not %s" % type(element).__name__)
        return self._number(element)

    def _number(self, element: Any) -> Any:
        """As a double. A value that JSON or a double cannot hold is not counted."""
        if isinstance(element, (int, float)) and not isinstance(element, bool):
            try:
                number = int.__float__(element) if isinstance(element, int) else float.__float__(element)
            except OverflowError:
                return self._tell("a value is over the range of numbers")
            if number - number == 0:
                return number
        return self._tell("a value must be a finite number, not %s" % type(element).__name__)

    def _tell(self, why: str) -> Any:
        """Each reason once: a log line a request would bury the rest. Returns None."""
        if why not in self._told:
            self._told.add(why)
            report("monitoring: a prediction could not be counted: %s" % why)


def _is_numpy(value: object) -> bool:
    module = type(value).__module__
    return type(module) is str and module.split(".")[0] == "numpy"


def _class_counts(names: list[str]) -> list[tuple[str, int]]:
    counts = Counter(names).most_common()
    others = sum(count for _, count in counts[CLASSES_MAX:])
    return counts[:CLASSES_MAX] + ([(OTHERS, others)] if others else [])


def _value_sum(values: list[float]) -> dict[str, float]:
    """A sum over the range of doubles is its end of the range."""
    most = 1.7e308
    return {"count": len(values), "sum": min(most, max(-most, sum(values))), "least": min(values), "most": max(values)}
