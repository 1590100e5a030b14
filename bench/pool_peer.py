"""The peer of a batch job: multiprocessing.Pool over the same file, from opening it to the last result.

`python pool_peer.py FILE BATCH_SIZE parent|children` prints seconds and CPU seconds as JSON. `parent`: the parent
parses each line, as a script would; `children`: they parse the joined bytes, which is the best a Pool can do.
"""

import json
import resource
import sys
import time
from multiprocessing import Pool


def predict(items):
    return None


def parse_and_predict(raw):
    return predict(json.loads(raw))


def batches(path, size):
    batch = []
    with open(path, "rb") as lines:
        for line in lines:
            batch.append(line)
            if len(batch) == size:
                yield batch
                batch = []
    if batch:
        yield batch


def parsed(path, size):
    for batch in batches(path, size):
        yield [json.loads(line) for line in batch]


def joined(path, size):
    for batch in batches(path, size):
        yield b"[" + b",".join(batch) + b"]"


def main():
    path, size, who = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    started = time.perf_counter()
    count = 0
    with Pool(2) as pool:
        work = (predict, parsed(path, size)) if who == "parent" else (parse_and_predict, joined(path, size))
        for _ in pool.imap_unordered(*work, chunksize=1):
            count += 1
        pool.close()
        pool.join()
    seconds = time.perf_counter() - started
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(json.dumps({"batches": count, "seconds": seconds, "cpu_s": sum(u.ru_utime + u.ru_stime for u in usage)}))


if __name__ == "__main__":
    main()
