"""Recognises the digits in uploaded pictures: a form with one file or more, and how many guesses of each are wanted."""

from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression


class PythonPredictor:
    def __init__(self, config):
        digits = load_digits()
        self.model = LogisticRegression(C=0.01, max_iter=500).fit(digits.data[:1000], digits.target[:1000])

    def predict(self, payload):
        wanted = int(payload["guesses"])
        return [self.guesses(picture, wanted) for picture in payload.getlist("picture")]

    def guesses(self, picture, wanted):
        # A PGM file: three lines, then a byte for each of 8 x 8 pixels.
        pixels = picture.file.read().split(b"\n", 3)[3]
        shares = self.model.predict_proba([list(pixels)])[0]
        best = sorted(range(10), key=lambda digit: -shares[digit])[:wanted]
        return {"file": picture.filename, "guesses": [[digit, round(float(shares[digit]), 3)] for digit in best]}
