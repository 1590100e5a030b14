"""The same job with pandas: `pandas_peer.py CSV DIRECTORY`. Reads, aggregates, transforms, and writes both sets as Parquet."""

import sys

import numpy
import pandas

source, target = sys.argv[1:]
data = pandas.read_csv(
    source, header=None, names=["x", "y", "word"], dtype={"x": "float32", "y": "float32", "word": "str"}
)
if not ((data["x"] >= -100) & (data["x"] <= 100)).all():
    raise ValueError("x is out of its bounds")
index = {word: at for at, word in enumerate(data["word"].value_counts().index)}
made = pandas.DataFrame(
    {
        "x_normalized": ((data["x"] - data["x"].mean()) / data["x"].std()).astype("float32"),
        "y_normalized": ((data["y"] - data["y"].mean()) / data["y"].std()).astype("float32"),
        "word_indexed": data["word"].map(index),
    }
)
is_training = numpy.random.default_rng(1).random(len(made)) < 0.8
made[is_training].to_parquet(target + "/training.parquet")
made[~is_training].to_parquet(target + "/evaluation.parquet")
