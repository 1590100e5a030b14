"""How far a car goes on a gallon: a linear regression. Its predictions are counted (`monitoring`)."""

import csv

from sklearn.linear_model import LinearRegression

FEATURES = ("cylinders", "displacement", "horsepower", "weight", "acceleration")


class PythonPredictor:
    def __init__(self, config):
        with open("cars.csv") as file:
            cars = list(csv.DictReader(file))
        self.model = LinearRegression().fit([features_of(car) for car in cars], [float(car["mpg"]) for car in cars])

    def predict(self, payload):
        return float(self.model.predict([features_of(payload)])[0])


def features_of(car):
    return [float(car[feature]) for feature in FEATURES]
