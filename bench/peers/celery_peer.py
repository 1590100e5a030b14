"""Celery on Redis: `python celery_peer.py FILE BATCH_SIZE BATCHES`, with REDIS_URL, prints seconds from reading to the last batch.

Two worker processes, no-op; results are ignored, and counted by Redis, which is the least work that still shows the end
of a job.
"""

import json
import os
import subprocess
import sys
import time

import redis
from celery import Celery

URL = os.environ["REDIS_URL"]
app = Celery("celery_peer", broker=URL)
app.conf.update(task_ignore_result=True, worker_prefetch_multiplier=64, broker_connection_retry_on_startup=True)
counter = redis.Redis.from_url(URL)


@app.task
def predict(items):
    counter.incr("done")


def batches(path, size, count):
    with open(path) as file:
        for _ in range(count):
            yield [json.loads(file.readline()) for _ in range(size)]


def wait_for(count):
    while int(counter.get("done") or 0) < count:
        time.sleep(0.002)


def main():
    path, size, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    counter.flushall()
    options = ["-c", "2", "-l", "ERROR", "--without-gossip", "--without-mingle", "--without-heartbeat"]
    command = [sys.executable, "-m", "celery", "-A", "celery_peer", "worker", *options]
    here = os.path.dirname(os.path.abspath(__file__))
    worker = subprocess.Popen(command, cwd=here, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        predict.delay([])
        wait_for(1)
        started = time.perf_counter()
        with app.producer_pool.acquire() as producer:
            for batch in batches(path, size, count):
                predict.apply_async((batch,), producer=producer)
        wait_for(count + 1)
        print(json.dumps({"batches": count, "seconds": time.perf_counter() - started}))
    finally:
        worker.terminate()
        worker.wait()


if __name__ == "__main__":
    main()
