"""One call of the model for the requests of up to 0.1 s: `payload` is a list of them, and so is what predict() returns."""

from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

FEATURES = ("sepal_length", "sepal_width", "petal_length", "petal_width")


class PythonPredictor:
    def __init__(self, config):
        iris = load_iris()
        self.species = iris.target_names
        self.model = LogisticRegression(max_iter=1000).fit(iris.data[::2], iris.target[::2])

    def predict(self, payload):
        print("a batch of %d" % len(payload))
        flowers = [[flower[feature] for feature in FEATURES] for flower in payload]
        return [str(self.species[each]) for each in self.model.predict(flowers)]
