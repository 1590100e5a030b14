"""A scikit-learn classifier of irises, the same for us and for FastAPI."""

from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

NAMES = ("setosa", "versicolor", "virginica")
FEATURES = ("sepal_length", "sepal_width", "petal_length", "petal_width")
_data = load_iris()
_model = LogisticRegression(max_iter=200).fit(_data.data, _data.target)


def classify(flower):
    return NAMES[_model.predict([[flower[name] for name in FEATURES]])[0]]
