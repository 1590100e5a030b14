"""Estimators of the scikit-learn kind: `fit`, `predict`, and `predict_proba` and `decision_function` where they have them."""

import base64
import os
import pickle
import time
import types

import numpy

from .features import feature_matrix

FILE = "model.pickle"
kind = "fitted"


def run_config(plan, model_dir):
    """What stands for TensorFlow's RunConfig: the settings of the training, and a directory that lasts until it ends."""
    os.makedirs(model_dir, exist_ok=True)
    return types.SimpleNamespace(model_dir=model_dir, **plan["model"]["config"]["training"])


def train(estimator, model, rows):
    """`rows(part)` gives the columns of a dataset by name. Fits, and returns (what is to be kept, metrics of the evaluation)."""
    training = rows("training")
    print("%s: fitting %d rows" % (type(estimator).__name__, len(training[model["target"]])))
    started = time.monotonic()
    estimator.fit(_features(model, training), _target(model, training))
    print("fitted in %.1f s" % (time.monotonic() - started))
    return estimator, _evaluate(estimator, model, rows("evaluation"))


def save(estimator, directory):
    with open(os.path.join(directory, FILE), "wb") as file:
        pickle.dump(estimator, file)


class FittedModel:
    def __init__(self, directory, model):
        with open(os.path.join(directory, FILE), "rb") as file:
            self._estimator = pickle.load(file)
        self._model = model

    def predict(self, rows):
        """The outputs of each row, which is a dict of the features by name."""
        features = _features(self._model, {name: [row[name] for row in rows] for name in self._model["features"]})
        values = self._estimator.predict(features).tolist()
        if self._model["type"] == "regression":
            return [{"predictions": [value]} for value in values]
        return [
            {"class_ids": [str(int(value))], "classes": [base64.b64encode(b"%d" % int(value)).decode()], **shares}
            for value, shares in zip(values, self._shares(features))
        ]

    def _shares(self, features):
        estimator = self._estimator
        count = len(features)
        if not hasattr(estimator, "predict_proba"):
            if not hasattr(estimator, "decision_function"):
                return [{}] * count
            return [{"logits": each} for each in _vectors(estimator.decision_function(features))]
        probabilities = estimator.predict_proba(features)
        if hasattr(estimator, "decision_function"):
            logits = estimator.decision_function(features)
        else:
            # The log of 0 is no number of JSON.
            logits = numpy.log(numpy.maximum(probabilities, numpy.finfo(float).tiny))
        return [{"logits": logit, "probabilities": share} for logit, share in zip(_vectors(logits), probabilities.tolist())]


def _vectors(values):
    """One vector a row; of two classes, there is one number."""
    return values.reshape(len(values), -1).tolist()


def _features(model, columns):
    return feature_matrix([columns[name] for name in model["features"]], [model["column_types"][name] for name in model["features"]])


def _target(model, columns):
    return numpy.asarray(columns[model["target"]])


def _evaluate(estimator, model, columns):
    target = _target(model, columns) if columns else ()
    if len(target) == 0:
        return {}
    predicted = estimator.predict(_features(model, columns))
    if model["type"] == "classification":
        return {"accuracy": float(numpy.mean(predicted == target))}
    errors = predicted.astype(float) - target.astype(float)
    return {"rmse": float(numpy.sqrt(numpy.mean(errors**2))), "mae": float(numpy.mean(numpy.abs(errors)))}
