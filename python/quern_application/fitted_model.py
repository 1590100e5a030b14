"""Estimators like those of scikit-learn: `fit`, `predict`, and perhaps `predict_proba` and `decision_function`."""

from __future__ import annotations

import base64
import os
import pickle
import time
import types
from typing import TYPE_CHECKING, Any

import numpy

from .features import feature_matrix

if TYPE_CHECKING:
    from .shapes import Columns, Model, Outputs, Plan, Rows, Sample

FILE = "model.pickle"
kind = "fitted"


def run_config(plan: Plan, model_dir: str) -> types.SimpleNamespace:
    """`run_config` of create_estimator(), instead of TensorFlow's RunConfig.

    It has `model_dir`, a directory that lasts until the training ends, and the settings of `training` in the YAML, such
    as `batch_size`.
    """
    os.makedirs(model_dir, exist_ok=True)
    return types.SimpleNamespace(model_dir=model_dir, **plan["model"]["config"]["training"])


def train(estimator: Any, model: Model, rows: Rows) -> tuple[Any, dict[str, float]]:
    """Fits, and returns (the estimator to save, metrics of the evaluation).

    `fit` gets the features as in `feature_matrix`, and the target as an array of one value a row. Raises ValueError if
    the estimator does not give one output a row.
    """
    training = rows("training")
    print("%s: fitting %d rows" % (type(estimator).__name__, len(training[model["target"]])))
    started = time.monotonic()
    estimator.fit(_features(model, training), _target(model, training))
    print("fitted in %.1f s" % (time.monotonic() - started))
    # An estimator that cannot be served fails now, not at the first request.
    _outputs(estimator, model, _features(model, {name: training[name][:2] for name in model["features"]}))
    return estimator, _evaluate(estimator, model, rows("evaluation"))


def save(estimator: Any, directory: str) -> None:
    """Saves it for FittedModel. Raises the error of pickle for an estimator that cannot be pickled."""
    with open(os.path.join(directory, FILE), "wb") as file:
        pickle.dump(estimator, file)


class FittedModel:
    """A fitted estimator that answers requests."""

    def __init__(self, directory: str, model: Model) -> None:
        with open(os.path.join(directory, FILE), "rb") as file:
            self._estimator = pickle.load(file)
        self._model = model

    def predict(self, rows: list[Sample]) -> list[Outputs]:
        """The outputs of each row, which is a dict of the features by name."""
        features = _features(self._model, {name: [row[name] for row in rows] for name in self._model["features"]})
        return _outputs(self._estimator, self._model, features)


def _outputs(estimator: Any, model: Model, features: numpy.ndarray) -> list[Outputs]:
    values = _scalars("predict", estimator.predict(features), len(features)).tolist()
    if model["type"] == "regression":
        return [{"predictions": [value]} for value in values]
    return [
        {"class_ids": [str(int(value))], "classes": [base64.b64encode(b"%d" % int(value)).decode()], **shares}
        for value, shares in zip(values, _shares(estimator, features))
    ]


def _shares(estimator: Any, features: numpy.ndarray) -> list[Outputs]:
    count = len(features)
    logits = None
    if hasattr(estimator, "decision_function"):
        logits = _vectors("decision_function", estimator.decision_function(features), count)
    if not hasattr(estimator, "predict_proba"):
        return [{}] * count if logits is None else [{"logits": each} for each in logits.tolist()]
    probabilities = _vectors("predict_proba", estimator.predict_proba(features), count)
    if logits is None:
        # JSON has no number for the log of 0.
        logits = numpy.log(numpy.maximum(probabilities, numpy.finfo(float).tiny))
    return [{"logits": logit, "probabilities": share} for logit, share in zip(logits.tolist(), probabilities.tolist())]


def _vectors(method: str, values: Any, count: int) -> numpy.ndarray:
    """One vector a row, shape (rows, values), from arrays, lists, pandas, or one value for one row.

    Of two classes, there may be one number. Raises ValueError for another number of rows, and for values that are not
    numbers.
    """
    array = _array(method, values)
    if array.ndim == 0 or (count == 1 and array.ndim == 1 and len(array) != 1):
        array = array.reshape(1, -1)
    if len(array) != count:
        raise ValueError("%s() returned %d values for %d rows; return one for each" % (method, len(array), count))
    return array.reshape(count, -1)


def _scalars(method: str, values: Any, count: int) -> numpy.ndarray:
    """One value a row, shape (rows,). Raises ValueError if there are more."""
    vectors = _vectors(method, values, count)
    if vectors.shape[1] != 1:
        raise ValueError("%s() returned %d values for a row; return one" % (method, vectors.shape[1]))
    return vectors[:, 0]


def _array(method: str, values: Any) -> numpy.ndarray:
    if hasattr(values, "toarray"):
        values = values.toarray()
    elif not hasattr(values, "__len__") and hasattr(values, "__iter__") and not hasattr(values, "__array__"):
        values = list(values)
    try:
        array = numpy.asarray(values)
        return array.astype(float) if array.dtype == object else array
    except (TypeError, ValueError) as error:
        raise ValueError("%s() returned something that is not an array of numbers: %s" % (method, error)) from error


def _features(model: Model, columns: Columns) -> numpy.ndarray:
    return feature_matrix(
        [columns[name] for name in model["features"]], [model["column_types"][name] for name in model["features"]]
    )


def _target(model: Model, columns: Columns) -> numpy.ndarray:
    return numpy.asarray(columns[model["target"]])


def _evaluate(estimator: Any, model: Model, columns: Columns) -> dict[str, float]:
    target: Any = _target(model, columns) if columns else ()
    if len(target) == 0:
        return {}
    predicted = _scalars("predict", estimator.predict(_features(model, columns)), len(target))
    if model["type"] == "classification":
        return {"accuracy": float(numpy.mean(predicted == target))}
    errors = predicted.astype(float) - target.astype(float)
    return {"rmse": float(numpy.sqrt(numpy.mean(errors**2))), "mae": float(numpy.mean(numpy.abs(errors)))}
