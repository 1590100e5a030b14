"""One of two models for the same question; the configuration says which."""

from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

FEATURES = ("sepal_length", "sepal_width", "petal_length", "petal_width")
MODELS = {
    "linear": LogisticRegression(max_iter=1000),
    "trees": DecisionTreeClassifier(max_depth=3, random_state=0),
}


class PythonPredictor:
    def __init__(self, config):
        iris = load_iris()
        self.species = iris.target_names
        self.model = MODELS[config["model"]].fit(iris.data[::2], iris.target[::2])

    def predict(self, payload):
        return str(self.species[self.model.predict([[payload[feature] for feature in FEATURES]])[0]])
