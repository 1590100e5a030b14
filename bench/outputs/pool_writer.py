"""The peer of a job with output: multiprocessing.Pool over the same file, which writes the same files by hand.

`python pool_writer.py FILE BATCH_SIZE DIRECTORY` prints seconds and CPU seconds as JSON. Children parse and encode; the
parent writes what they return in order: parts of 64 MiB with their checksums, synced, then a manifest.
"""

import hashlib
import json
import os
import resource
import sys
import time
from multiprocessing import Pool

PART_BYTES = 64 * 1024 * 1024


def predict(items):
    return items


def rows(numbered):
    index, raw = numbered
    encode = json.dumps
    return "".join(
        '{"batch_index":%d,"item_index":%d,"prediction":%s}\n' % (index, item, encode(value, separators=(",", ":")))
        for item, value in enumerate(predict(json.loads(raw)))
    ).encode()


def batches(path, size):
    index, batch = 0, []
    with open(path, "rb") as lines:
        for line in lines:
            batch.append(line)
            if len(batch) == size:
                yield index, b"[" + b",".join(batch) + b"]"
                index, batch = index + 1, []
    if batch:
        yield index, b"[" + b",".join(batch) + b"]"


class Parts:
    def __init__(self, directory):
        self.directory = directory
        self.parts = []
        self.file = None

    def write(self, content):
        if self.file is None:
            self.path = "part-%d.jsonl" % len(self.parts)
            self.file = open(os.path.join(self.directory, self.path), "wb")  # noqa: SIM115  (it stays open)
            self.sha256, self.bytes = hashlib.sha256(), 0
        self.file.write(content)
        self.sha256.update(content)
        self.bytes += len(content)
        if self.bytes >= PART_BYTES:
            self.end()

    def end(self):
        if self.file is None:
            return
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        self.file = None
        self.parts.append({"path": self.path, "bytes": self.bytes, "sha256": self.sha256.hexdigest()})


def main():
    path, size, directory = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    started = time.perf_counter()
    os.makedirs(directory)
    parts = Parts(directory)
    with Pool(2) as pool:
        for content in pool.imap(rows, batches(path, size), chunksize=1):
            parts.write(content)
        pool.close()
        pool.join()
    parts.end()
    with open(os.path.join(directory, "manifest.json"), "w") as manifest:
        json.dump({"parts": parts.parts}, manifest)
    seconds = time.perf_counter() - started
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(json.dumps({"seconds": seconds, "cpu_s": sum(u.ru_utime + u.ru_stime for u in usage)}))


if __name__ == "__main__":
    main()
