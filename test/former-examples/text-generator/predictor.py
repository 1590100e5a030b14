"""Continues a text, word by word: the word that followed the last two most often. Each word is sent as soon as it is
made.
"""

import time
from collections import Counter, defaultdict


class PythonPredictor:
    def __init__(self, config):
        self.length = config["length"]
        self.pace = config["pace"]
        self.followers = defaultdict(Counter)
        with open("corpus.txt") as file:
            words = file.read().split()
        for first, second, third in zip(words, words[1:], words[2:]):
            self.followers[first, second][third] += 1

    def predict(self, payload):
        *_, first, second = payload["text"].split()
        yield payload["text"]
        for _ in range(self.length):
            followers = self.followers[first, second]
            if not followers:
                return
            time.sleep(self.pace)
            first, second = second, followers.most_common(1)[0][0]
            yield " " + second
