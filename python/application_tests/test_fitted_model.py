"""Estimators like those of scikit-learn: their inputs, and the predictions of them."""

import pickle
import tempfile
import unittest

import numpy
from quern_application import fitted_model
from quern_application.features import feature_matrix
from quern_application.fitted_model import FittedModel
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

NUMBERS = {"x": numpy.array([0, 1, 2, 3, 4, 5], dtype="float32"), "y": numpy.array([5, 3, 4, 1, 2, 0], dtype="float32")}


def model(kind="classification", **types):
    return {"type": kind, "features": list(types), "target": "t", "column_types": {**types, "t": "INT_COLUMN"}}


def served(estimator, described, columns):
    """Trains, saves and reopens an estimator."""
    trained, metrics = fitted_model.train(estimator, described, lambda part: columns)
    with tempfile.TemporaryDirectory() as directory:
        fitted_model.save(trained, directory)
        return FittedModel(directory, described), metrics


class Frame:
    """Like a DataFrame, hardly a sequence: its items are columns, and its length is the number of rows."""

    def __init__(self, values):
        self._values = values

    def __array__(self, dtype=None, copy=None):
        return self._values

    def __len__(self):
        return len(self._values)

    def __getitem__(self, column):
        raise KeyError(column)


class Giving:
    """A custom estimator: `give` converts arrays to the results of its methods."""

    _gives = {}  # noqa: RUF012

    def __init__(self, give):
        self._name = id(give)
        Giving._gives[self._name] = give

    def fit(self, features, target):
        return self

    def predict(self, features):
        return self._give((features[:, 0] > 2).astype(int))

    def predict_proba(self, features):
        share = 0.25 + (features[:, 0] > 2) * 0.5
        return self._give(numpy.stack([1 - share, share], axis=1))

    def decision_function(self, features):
        logit = features[:, 0].astype(float) - 2.5
        return self._give(numpy.stack([-logit, logit], axis=1))

    def _give(self, values):
        return Giving._gives[self._name](values)


class Matrices(unittest.TestCase):
    def test_matrices_are_as_wide_as_their_columns(self):
        floats = feature_matrix([[1.5], [2.5]], ["FLOAT_COLUMN", "FLOAT_COLUMN"])
        self.assertEqual((floats.dtype, floats.tolist()), (numpy.float32, [[1.5, 2.5]]))
        integers = feature_matrix([[2**40 + 1], [0.5]], ["INT_COLUMN", "FLOAT_COLUMN"])
        self.assertEqual((integers.dtype, integers.tolist()), (numpy.float64, [[2**40 + 1, 0.5]]))
        texts = feature_matrix([["a"], [1]], ["STRING_COLUMN", "INT_COLUMN"])
        self.assertEqual((texts.dtype, texts.tolist()), (object, [["a", 1]]))


class Answers(unittest.TestCase):
    def test_two_classes_have_one_logit(self):
        columns = {**NUMBERS, "t": numpy.array([0, 0, 0, 1, 1, 1])}
        fitted, metrics = served(LogisticRegression(), model(x="FLOAT_COLUMN", y="FLOAT_COLUMN"), columns)
        self.assertEqual(metrics, {"accuracy": 1.0})
        low, high = fitted.predict([{"x": 0.0, "y": 5.0}, {"x": 5.0, "y": 0.0}])
        self.assertEqual(
            (low["class_ids"], low["classes"], high["class_ids"], high["classes"]), (["0"], ["MA=="], ["1"], ["MQ=="])
        )
        self.assertEqual((len(low["logits"]), len(low["probabilities"])), (1, 2))
        self.assertLess(low["logits"][0], 0)

    def test_logits_without_decision_function_are_the_logs_of_the_probabilities(self):
        columns = {**NUMBERS, "t": numpy.array([0, 0, 1, 1, 2, 2])}
        fitted, _ = served(GaussianNB(), model(x="FLOAT_COLUMN", y="FLOAT_COLUMN"), columns)
        (answer,) = fitted.predict([{"x": 1.0, "y": 4.0}])
        numpy.testing.assert_allclose(
            answer["logits"], numpy.log(numpy.maximum(answer["probabilities"], 1e-300)), rtol=1e-6
        )

    def test_an_estimator_without_probabilities_gives_none(self):
        columns = {**NUMBERS, "t": numpy.array([0, 0, 0, 1, 1, 1])}
        fitted, _ = served(RidgeClassifier(), model(x="FLOAT_COLUMN"), columns)
        (answer,) = fitted.predict([{"x": 0.0}])
        self.assertEqual(sorted(answer), ["class_ids", "classes", "logits"])

    def test_answers_are_the_same_for_every_kind_of_sequence(self):
        columns = {**NUMBERS, "t": numpy.array([0, 0, 0, 1, 1, 1])}
        described = model(x="FLOAT_COLUMN")
        rows = [{"x": 0.0}, {"x": 5.0}]
        whole, metrics = served(Giving(lambda values: values), described, columns)
        expected, (one,) = whole.predict(rows), whole.predict(rows[:1])
        self.assertEqual(
            expected[1], {"class_ids": ["1"], "classes": ["MQ=="], "logits": [-2.5, 2.5], "probabilities": [0.25, 0.75]}
        )
        kinds = {
            "lists": lambda values: values.tolist(),
            "tuples": lambda values: tuple(tuple(each) if values.ndim > 1 else each for each in values.tolist()),
            "what knows how to be an array, as frames of pandas do": Frame,
            "a generator": lambda values: (each for each in values.tolist()),
            "objects": lambda values: values.astype(object),
            "columns": lambda values: values if values.ndim > 1 else values.reshape(-1, 1),
        }
        for name, give in kinds.items():
            with self.subTest(name):
                fitted, found = served(Giving(give), described, columns)
                self.assertEqual((fitted.predict(rows), found), (expected, metrics))
        with self.subTest("one value for one row"):
            estimator = Giving(lambda values: values.tolist()[0] if len(values) == 1 else values)
            self.assertEqual(served(estimator, described, columns)[0].predict(rows[:1]), [one])

    def test_predictions_that_cannot_be_served_fail_the_training(self):
        columns = {**NUMBERS, "t": numpy.array([0, 0, 0, 1, 1, 1])}
        for give, message in (
            (lambda values: values.tolist()[:1], r"predict\(\) returned 1 values for 2 rows; return one for each"),
            (lambda values: [[1], [2, 3]], r"predict\(\) returned something that is not an array of numbers"),
            (lambda values: numpy.zeros((len(values), 2)), r"predict\(\) returned 2 values for a row; return one"),
        ):
            with self.assertRaisesRegex(ValueError, message):
                fitted_model.train(Giving(give), model(x="FLOAT_COLUMN"), lambda part: columns)

    def test_a_regression_may_return_lists(self):
        columns = {**NUMBERS, "t": numpy.array([0, 1, 2, 3, 4, 5])}
        fitted, metrics = served(Giving(lambda values: values.tolist()), model("regression", x="FLOAT_COLUMN"), columns)
        self.assertEqual(fitted.predict([{"x": 5.0}]), [{"predictions": [1]}])
        self.assertEqual(sorted(metrics), ["mae", "rmse"])

    def test_a_regression_returns_numbers(self):
        columns = {**NUMBERS, "t": numpy.array([1, 3, 5, 7, 9, 11])}
        fitted, metrics = served(LinearRegression(), model("regression", x="FLOAT_COLUMN"), columns)
        (answer,) = fitted.predict([{"x": 10.0}])
        self.assertAlmostEqual(answer["predictions"][0], 21.0, places=4)
        self.assertEqual(sorted(metrics), ["mae", "rmse"])

    def test_features_may_be_texts_and_numbers(self):
        columns = {
            "word": numpy.array(["a", "b", "a", "b"], dtype=object),
            "n": numpy.array([1, 2, 3, 4]),
            "t": numpy.array([0, 1, 0, 1]),
        }
        encoder = ColumnTransformer([("word", OneHotEncoder(handle_unknown="ignore"), [0])], remainder="passthrough")
        fitted, _ = served(
            make_pipeline(encoder, LogisticRegression()), model(word="STRING_COLUMN", n="INT_COLUMN"), columns
        )
        self.assertEqual(
            [each["class_ids"] for each in fitted.predict([{"word": "b", "n": 1}, {"word": "a", "n": 4}])],
            [["1"], ["0"]],
        )

    def test_a_model_without_evaluation_has_no_metrics(self):
        columns = {**NUMBERS, "t": numpy.array([0, 0, 0, 1, 1, 1])}
        _, metrics = fitted_model.train(
            LogisticRegression(), model(x="FLOAT_COLUMN"), lambda part: columns if part == "training" else {}
        )
        self.assertEqual(metrics, {})

    def test_a_model_that_cannot_be_pickled_is_an_error(self):
        class Local(LogisticRegression):
            pass

        with tempfile.TemporaryDirectory() as directory, self.assertRaises((pickle.PicklingError, AttributeError)):
            fitted_model.save(Local(), directory)
