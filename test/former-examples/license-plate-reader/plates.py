"""Finds where the digits of a plate are, and asks another API what each of them is."""

import json
import os
import urllib.request


class PythonPredictor:
    def __init__(self, config):
        # Inside a Cortex cluster: http://api-digit-reader:8888/predict
        self.reader = os.environ["QUERN_API_URL"] + "/" + config["reader"]

    def predict(self, payload):
        """`payload` is the body of an image: a PGM file of 8 rows."""
        _kind, size, _maximum, pixels = payload.split(b"\n", 3)
        width = int(size.split()[0])
        rows = [list(pixels[at : at + width]) for at in range(0, len(pixels), width)]
        boxes = [[row[left : left + 8] for row in rows] for left in range(0, width, 8)]
        return {"plate": "".join(str(digit) for digit in self.read(boxes))}

    def read(self, boxes):
        body = json.dumps([sum(box, []) for box in boxes]).encode()
        request = urllib.request.Request(self.reader, body, {"content-type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
