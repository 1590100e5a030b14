"""Sees a copy of each request, and answers nobody."""


class PythonPredictor:
    def __init__(self, config):
        pass

    def predict(self, payload):
        print("recorded petals of %s" % payload["petal_length"])
