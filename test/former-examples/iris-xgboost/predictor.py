"""Boosted trees over Fisher's flowers. Every second flower is for training; the others are left to be recognised."""

import xgboost
from sklearn.datasets import load_iris

FEATURES = ("sepal_length", "sepal_width", "petal_length", "petal_width")


class PythonPredictor:
    def __init__(self, config):
        iris = load_iris()
        self.species = [str(name) for name in iris.target_names]
        parameters = {"objective": "multi:softprob", "num_class": 3, "max_depth": 3, "nthread": 1}
        training = xgboost.DMatrix(iris.data[::2], label=iris.target[::2])
        self.model = xgboost.train(parameters, training, num_boost_round=config["rounds"])

    def predict(self, payload):
        flower = [[payload[feature] for feature in FEATURES]]
        shares = self.model.predict(xgboost.DMatrix(flower))[0]
        return {"species": self.species[shares.argmax()], "probability": float(shares.max())}
