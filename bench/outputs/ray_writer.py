"""The peer of a job with output: Ray Data over the same file, which writes JSON files with the same rows.

`python ray_writer.py FILE BATCH_SIZE LINES DIRECTORY` prints seconds, from reading to the last file. Two actors; the
cluster is up before the clock starts, as the server is. The order of the input is kept, as in an output.
"""

import json
import logging
import sys
import time

import ray


class Predictor:
    def __call__(self, batch):
        return batch


def main():
    path, size, lines, directory = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    ray.init(num_cpus=3, logging_level=logging.ERROR, include_dashboard=False, log_to_driver=False)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True
    ray.data.from_items([{"id": 1}]).map_batches(Predictor, batch_size=1, concurrency=1).count()
    started = time.perf_counter()
    dataset = ray.data.read_json(path).limit(lines)
    dataset.map_batches(Predictor, batch_size=size, concurrency=2).write_json(directory)
    print(json.dumps({"seconds": time.perf_counter() - started}))


if __name__ == "__main__":
    main()
