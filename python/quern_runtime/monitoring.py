"""What a prediction counts as (`monitoring` of the configuration). It never fails a request."""

import sys

# Beyond this an integer is infinite as a number, and Python refuses to write some of them.
_INT_BITS_MAX = 1023


class Monitor:
    """`model_type` is `classification` or `regression`; `key` picks a field of an object; arrays count by element."""

    def __init__(self, model_type, key):
        self._is_classification = model_type == "classification"
        self._key = key
        self._told = set()

    def observe(self, prediction):
        """{"classes": [text…]} or {"values": [number…]} of what could be counted; {} where nothing could."""
        if type(prediction).__module__.split(".")[0] == "numpy":
            prediction = prediction.tolist()
        elements = prediction if isinstance(prediction, (list, tuple)) else [prediction]
        counted = [value for value in map(self._observe_one, elements) if value is not None]
        if not counted:
            return {}
        return {"classes" if self._is_classification else "values": counted}

    def _observe_one(self, element):
        if self._key is not None:
            if not isinstance(element, dict) or self._key not in element:
                return self._tell('it has no field "%s"' % self._key)
            element = element[self._key]
        if type(element).__module__.split(".")[0] == "numpy":
            element = element.tolist()
        if isinstance(element, int) and element.bit_length() > _INT_BITS_MAX:
            return self._tell("an integer of %d bits is too large to count" % element.bit_length())
        if self._is_classification:
            if isinstance(element, (str, int)) and not isinstance(element, bool):
                return str(element)
            return self._tell("a class must be a str or an int, not %s" % type(element).__name__)
        if isinstance(element, (int, float)) and not isinstance(element, bool) and element - element == 0:
            return element
        return self._tell("a value must be a finite number, not %s" % type(element).__name__)

    def _tell(self, why):
        """Each reason once: a log line a request would bury the rest."""
        if why not in self._told:
            self._told.add(why)
            print("monitoring: a prediction could not be counted: %s" % why, file=sys.stderr)
