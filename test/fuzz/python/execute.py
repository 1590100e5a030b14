"""The process that runs the inputs of a target in Python: `execute.py targets|agreements NAME`.

It speaks over the socket that is its descriptor 3, as test/fuzz/channel.ts has it: `u32 length | bytes` both ways.
"""

import json
import os
import resource
import socket
import struct
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
RUNTIME = os.path.join(ROOT, "python", "quern_runtime")
sys.path[:0] = [os.path.dirname(RUNTIME), HERE]

# The time limit of one input, as in execute.ts.
CPU_S_MAX = 2.0
MEMORY_BYTES_MAX = 2 << 30
RUN, LOOK, KEEP = b"rlk"


class Coverage:
    """The lines of the runtime that have run, and from where."""

    def __init__(self):
        self._seen = set()
        self._last = 0
        self.is_fresh = False

    def on_call(self, frame, event, argument):
        return self._on_line if frame.f_code.co_filename.startswith(RUNTIME) else None

    def _on_line(self, frame, event, argument):
        place = hash((frame.f_code.co_filename, frame.f_lineno))
        step = (self._last, place)
        self._last = place
        if step not in self._seen:
            self._seen.add(step)
            self.is_fresh = True
        return self._on_line


def main(kind, name):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    run = getattr(__import__(kind), name.replace("-", "_"))
    coverage = Coverage() if kind == "targets" else None
    channel = socket.socket(fileno=3)
    write(channel, {})
    for message in messages(channel):
        write(channel, answer(run, coverage, message[1:]) if message[0] == RUN else {"fresh": False})


def answer(run, coverage, data):
    started = time.process_time()
    try:
        if coverage is not None:
            coverage.is_fresh = False
            sys.settrace(coverage.on_call)
        try:
            run(data)
        finally:
            sys.settrace(None)
    except BaseException:
        return {"finding": traceback.format_exc()[-4000:].split("\n", 1)[1]}
    took = time.process_time() - started
    if took > CPU_S_MAX:
        return {"finding": "%d bytes took %d ms of a core" % (len(data), took * 1000)}
    return {"fresh": coverage is not None and coverage.is_fresh}


def messages(channel):
    """Until the fuzzer ends the connection."""
    stream = channel.makefile("rb")
    while True:
        head = stream.read(4)
        if len(head) < 4:
            return
        yield stream.read(struct.unpack("<I", head)[0])


def write(channel, value):
    body = json.dumps(value).encode()
    channel.sendall(struct.pack("<I", len(body)) + body)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
