"""Serves the model of an application: the address, responses and errors of Cortex 0.3."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from quern_runtime.faults import JsonError
from quern_runtime.http_payload import parse_json

from .fitted_model import FittedModel
from .transform import TransformedColumn
from .transformers import to_column
from .user_code import load_module

if TYPE_CHECKING:
    from .shapes import Model, Outputs, Sample, Served

DIRECTORY = ".quern"
LEGAL: dict[str, tuple[type, ...]] = {"INT_COLUMN": (int,), "FLOAT_COLUMN": (int, float), "STRING_COLUMN": (str,)}


class SampleFault(Exception):
    """The error of a sample, with the message of Cortex 0.3."""


class Answer:
    """A text with its status."""

    def __init__(self, status_code: int, body: str) -> None:
        self.status_code = status_code
        self.headers: dict[str, str] = {}
        self.body = body


class PythonPredictor:
    """Answers `{"samples": [{column: value}]}` with `{"<type>_predictions": [outputs], "resource_id": id}`.

    The outputs of each sample are those of the model, with `predicted_class` or `predicted_value`, and the same
    reversed by the target's transformer. A body that is not JSON gets 400, and a sample that cannot be predicted 406.
    """

    # Bodies that are not JSON get a response of their own here.
    takes_body = True

    def __init__(self, config: dict[str, Any]) -> None:
        project = os.getcwd()
        directory = os.path.join(project, DIRECTORY)
        with open(os.path.join(directory, "serving.json"), encoding="utf-8") as file:
            model = json.load(file)
        self._model = model
        self._resource_id = config["resource_id"]
        self._prediction_key = model["prediction_key"] or (
            "class_ids" if model["type"] == "classification" else "predictions"
        )
        self._transformed = {
            column["name"]: TransformedColumn(column, model["raw_types"], project, model["values"].__getitem__)
            for column in model["transformed"]
        }
        self._needed = _needed_raw_columns(model["features"], self._transformed)
        load_module(project, model["path"])
        self._served = _open_model(directory, model)

    def predict(self, payload: bytes) -> dict[str, Any] | Answer:
        try:
            request = parse_json(payload)
        except JsonError:
            return Answer(400, "Malformed JSON")
        try:
            samples = _samples_of(request)
        except SampleFault as fault:
            return _failed(request, fault)
        rows: list[Sample] = []
        for sample in samples:
            try:
                rows.append(self._row(sample))
            except Exception as error:
                return _failed(sample, error)
        try:
            predictions = [self._finished(outputs) for outputs in self._predict(rows)]
        except Exception as error:
            return _failed(samples[0], error)
        return {"%s_predictions" % self._model["type"]: predictions, "resource_id": self._resource_id}

    def _predict(self, rows: list[Sample]) -> list[Outputs]:
        return self._served.predict(rows) if rows else []

    def _row(self, sample: Any) -> Sample:
        """The features of a sample by name."""
        if not isinstance(sample, dict):
            raise SampleFault("the sample should be a json object")
        for name in self._needed:
            _check_value(sample, name, self._model["raw_types"][name])
        return {
            name: self._transformed[name].transform(sample)
            if name in self._transformed
            else to_column(sample[name], self._model["raw_types"][name])
            for name in self._model["features"]
        }

    def _finished(self, outputs: Outputs) -> Outputs:
        value = outputs[self._prediction_key]
        value = value[0] if isinstance(value, list) else value
        what, predicted = ("class", int(value)) if self._model["type"] == "classification" else ("value", float(value))
        target = self._transformed.get(self._model["target"])
        reverse = None if target is None else target.reverse(predicted)
        return {**outputs, "predicted_%s" % what: predicted, "predicted_%s_reversed" % what: reverse}


def _open_model(directory: str, model: Model) -> Served:
    if model["kind"] == "fitted":
        return FittedModel(directory, model)
    from .tensorflow_model import ServedModel

    return ServedModel(directory, model)


def _needed_raw_columns(features: list[str], transformed: dict[str, TransformedColumn]) -> list[str]:
    """The columns of the features, each once, without the target and columns that only training needs."""
    behind = [transformed[name].inputs if name in transformed else [name] for name in features]
    return list(dict.fromkeys(name for names in behind for name in names))


def _samples_of(request: Any) -> list[Any]:
    if not isinstance(request, dict) or "samples" not in request:
        raise SampleFault("top level `samples` key not found in request")
    samples = request["samples"]
    if not isinstance(samples, list):
        raise SampleFault("expected the value of key `samples` to be a list of json objects")
    return samples


def _check_value(sample: Sample, name: str, column_type: str) -> None:
    if name not in sample:
        raise SampleFault("%s is missing" % name)
    value = sample[name]
    if isinstance(value, bool) or not isinstance(value, LEGAL[column_type]):
        raise SampleFault("%s should be a %s" % (name, column_type))


def _failed(sample: Any, reason: Exception) -> Answer:
    # The reason may quote half a surrogate pair of the sample: UTF-8 cannot encode it, JSON escapes can.
    why = str(reason).encode("utf-8", "backslashreplace").decode()
    return Answer(406, "prediction failed for sample: %s (%s)" % (json.dumps(sample), why))
