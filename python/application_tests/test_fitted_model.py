"""Estimators of the scikit-learn kind: what they are given, and what is answered for them."""

import pickle
import tempfile
import unittest

import numpy
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from quern_application import fitted_model
from quern_application.features import feature_matrix
from quern_application.fitted_model import FittedModel

NUMBERS = {"x": numpy.array([0, 1, 2, 3, 4, 5], dtype="float32"), "y": numpy.array([5, 3, 4, 1, 2, 0], dtype="float32")}


def model(kind="classification", **types):
    return {"type": kind, "features": list(types), "target": "t", "column_types": {**types, "t": "INT_COLUMN"}}


def served(estimator, described, columns):
    """Trained, kept, and opened again."""
    trained, metrics = fitted_model.train(estimator, described, lambda part: columns)
    with tempfile.TemporaryDirectory() as directory:
        fitted_model.save(trained, directory)
        return FittedModel(directory, described), metrics


class Matrices(unittest.TestCase):
    def test_are_as_wide_as_their_columns(self):
        floats = feature_matrix([[1.5], [2.5]], ["FLOAT_COLUMN", "FLOAT_COLUMN"])
        self.assertEqual((floats.dtype, floats.tolist()), (numpy.float32, [[1.5, 2.5]]))
        integers = feature_matrix([[2**40 + 1], [0.5]], ["INT_COLUMN", "FLOAT_COLUMN"])
        self.assertEqual((integers.dtype, integers.tolist()), (numpy.float64, [[2**40 + 1, 0.5]]))
        texts = feature_matrix([["a"], [1]], ["STRING_COLUMN", "INT_COLUMN"])
        self.assertEqual((texts.dtype, texts.tolist()), (object, [["a", 1]]))


class Answers(unittest.TestCase):
    def test_of_two_classes_have_one_logit(self):
        columns = {**NUMBERS, "t": numpy.array([0, 0, 0, 1, 1, 1])}
        fitted, metrics = served(LogisticRegression(), model(x="FLOAT_COLUMN", y="FLOAT_COLUMN"), columns)
        self.assertEqual(metrics, {"accuracy": 1.0})
        low, high = fitted.predict([{"x": 0.0, "y": 5.0}, {"x": 5.0, "y": 0.0}])
        self.assertEqual((low["class_ids"], low["classes"], high["class_ids"], high["classes"]), (["0"], ["MA=="], ["1"], ["MQ=="]))
        self.assertEqual((len(low["logits"]), len(low["probabilities"])), (1, 2))
        self.assertLess(low["logits"][0], 0)

    def test_without_decision_function_are_the_logs_of_the_probabilities(self):
        columns = {**NUMBERS, "t": numpy.array([0, 0, 1, 1, 2, 2])}
        fitted, _ = served(GaussianNB(), model(x="FLOAT_COLUMN", y="FLOAT_COLUMN"), columns)
        (answer,) = fitted.predict([{"x": 1.0, "y": 4.0}])
        numpy.testing.assert_allclose(answer["logits"], numpy.log(numpy.maximum(answer["probabilities"], 1e-300)), rtol=1e-6)

    def test_without_probabilities_have_none(self):
        columns = {**NUMBERS, "t": numpy.array([0, 0, 0, 1, 1, 1])}
        fitted, _ = served(RidgeClassifier(), model(x="FLOAT_COLUMN"), columns)
        (answer,) = fitted.predict([{"x": 0.0}])
        self.assertEqual(sorted(answer), ["class_ids", "classes", "logits"])

    def test_of_a_regression(self):
        columns = {**NUMBERS, "t": numpy.array([1, 3, 5, 7, 9, 11])}
        fitted, metrics = served(LinearRegression(), model("regression", x="FLOAT_COLUMN"), columns)
        (answer,) = fitted.predict([{"x": 10.0}])
        self.assertAlmostEqual(answer["predictions"][0], 21.0, places=4)
        self.assertEqual(sorted(metrics), ["mae", "rmse"])

    def test_of_texts_and_numbers(self):
        columns = {
            "word": numpy.array(["a", "b", "a", "b"], dtype=object),
            "n": numpy.array([1, 2, 3, 4]),
            "t": numpy.array([0, 1, 0, 1]),
        }
        encoder = ColumnTransformer([("word", OneHotEncoder(handle_unknown="ignore"), [0])], remainder="passthrough")
        fitted, _ = served(make_pipeline(encoder, LogisticRegression()), model(word="STRING_COLUMN", n="INT_COLUMN"), columns)
        self.assertEqual([each["class_ids"] for each in fitted.predict([{"word": "b", "n": 1}, {"word": "a", "n": 4}])], [["1"], ["0"]])

    def test_without_an_evaluation_have_no_metrics(self):
        columns = {**NUMBERS, "t": numpy.array([0, 0, 0, 1, 1, 1])}
        _, metrics = fitted_model.train(
            LogisticRegression(), model(x="FLOAT_COLUMN"), lambda part: columns if part == "training" else {}
        )
        self.assertEqual(metrics, {})

    def test_what_cannot_be_kept_says_so(self):
        class Local(LogisticRegression):
            pass

        with tempfile.TemporaryDirectory() as directory, self.assertRaises((pickle.PicklingError, AttributeError)):
            fitted_model.save(Local(), directory)
