"""Ray Data over a file of JSON lines: `python ray_peer.py FILE BATCH_SIZE BATCHES` prints seconds, from reading to the last batch.

Two actors, no-op. The cluster is up before the clock starts, as the server is.
"""

import json
import logging
import sys
import time

import ray


class Predictor:
    def __call__(self, batch):
        return {"done": [1]}


def lines(path, count):
    with open(path) as file:
        return [json.loads(line) for _, line in zip(range(count), file)]


def main():
    path, size, batches = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    ray.init(num_cpus=3, logging_level=logging.ERROR, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    ray.data.from_items([{"id": 1}]).map_batches(Predictor, batch_size=1, concurrency=1).count()
    started = time.perf_counter()
    dataset = ray.data.from_items(lines(path, size * batches))
    done = dataset.map_batches(Predictor, batch_size=size, concurrency=2).sum("done")
    print(json.dumps({"batches": done, "seconds": time.perf_counter() - started}))


if __name__ == "__main__":
    main()
