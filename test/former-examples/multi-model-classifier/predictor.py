"""Several models in one API. The caller chooses with ?model=."""

from sklearn import datasets
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


class UnknownModel(Exception):
    status_code = 400

    def __init__(self, name, known):
        self.detail = "unknown model: %s; there are %s" % (name, ", ".join(known))


class PythonPredictor:
    def __init__(self, config):
        self.models = {name: trained(getattr(datasets, "load_" + name)()) for name in config["models"]}

    def predict(self, payload, query_params):
        name = query_params.get("model")
        if name not in self.models:
            raise UnknownModel(name, self.models)
        model, labels = self.models[name]
        return {"model": name, "label": labels[model.predict([payload["input"]])[0]]}


def trained(data):
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(data.data, data.target)
    return model, [str(label) for label in data.target_names]
