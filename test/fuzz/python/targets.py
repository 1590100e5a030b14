"""Parts of the Python runtime that read what others send. Each function runs one input, and raises for a finding."""

import gc
import json
import os
import socket
import sys
import tempfile

from quern_runtime import protocol
from quern_runtime.faults import PayloadError
from quern_runtime.http_payload import parse_payload
from quern_runtime.launcher_link import LauncherLink
from quern_runtime.listening import listen
from quern_runtime.note import Note
from quern_runtime.worker import Worker

TOKEN = "f00d"
PREDICTOR = """
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        if isinstance(payload, list) and len(payload) > 3: return (piece for piece in payload)
        return payload
"""


def payloads(data):
    """A body, after a line with its content type: it is a payload, or a PayloadError says why not."""
    content_type, _, body = data.partition(b"\n")
    try:
        parse_payload(content_type.decode("latin-1") or None, body)
    except PayloadError as error:
        assert len(str(error)) < 1000 + 10 * len(content_type) + len(body), "the error is long"


class Place:
    """A directory with a predictor; the worker's reports are discarded."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="quern-fuzz-")
        with open(os.path.join(self.directory, "predictor.py"), "w") as file:
            file.write(PREDICTOR)
        sys.stderr = sys.__stderr__ = open(os.devnull, "w")  # noqa: SIM115

    def worker(self):
        for name in ("w.sock", "note"):
            path = os.path.join(self.directory, name)
            if os.path.exists(path):
                os.unlink(path)
        self.listener = listen("unix:" + os.path.join(self.directory, "w.sock"))
        return Worker(self.listener, Note(os.path.join(self.directory, "note")), TOKEN, LauncherLink())

    def connect(self):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.connect(os.path.join(self.directory, "w.sock"))
        sock.setblocking(False)
        return sock


_place = None


def callers(data):
    """Frames of a stranger (first byte 0), a gateway (1) or a controller (2): the worker goes on serving its owner."""
    global _place
    _place = _place or Place()
    worker = _place.worker()
    try:
        owner = Caller(worker, _place.connect(), "controller", 1)
        owner.send(protocol.INIT, 0, json.dumps(init()).encode())
        assert owner.turn()[-1][0] == protocol.READY
        hostile = Caller(worker, _place.connect(), ("", "gateway", "controller")[data[0] % 3 if data else 0], 2)
        hostile.write(data[1:])
        hostile.turn()
        hostile.close()
        if not worker._draining and worker._life.state != "failed":
            must_serve(worker)
    finally:
        worker._sockets.close_in_child()
        # A worker freezes its objects when it is ready. Here they would never be freed, for each input's worker.
        gc.unfreeze()


def init():
    return {
        "api_id": "a",
        "project": _place.directory,
        "path": "predictor.py",
        "api_config": "{}",
        "concurrency": 4,
        "threads": 1,
    }


def must_serve(worker):
    """A gateway that comes now has its answer."""
    caller = Caller(worker, _place.connect(), "gateway", 0)
    caller.send(protocol.PREDICT, 1, b'"fine"')
    types = [(message_type, body) for message_type, _, _, body in caller.turn()]
    assert types[-1][0] == protocol.RESULT and types[-1][1].endswith(b'"fine"'), (
        "a prediction was answered with %r" % types
    )
    caller.close()
    assert worker._predictions.is_settled, "requests of callers that are gone are still there"


class Caller:
    def __init__(self, worker, sock, role, epoch):
        self._worker = worker
        self._sock = sock
        self._reader = protocol.FrameReader()
        if role:
            hello = {"protocol": protocol.PROTOCOL_VERSION, "role": role, "token": TOKEN, "epoch": epoch}
            self.send(protocol.HELLO, 0, json.dumps(hello).encode())

    def send(self, message_type, message_id, body):
        self.write(protocol.frame(message_type, message_id, body))

    def write(self, data):
        while data:
            try:
                data = data[self._sock.send(data) :]
            except BlockingIOError:
                self._worker_turn()
            except OSError:
                return

    def turn(self):
        """The messages of the worker until it is idle; invalid frames raise."""
        frames = []
        for _ in range(50):
            self._worker_turn()
            try:
                count = self._sock.recv_into(self._reader.space())
            except BlockingIOError:
                if frames or _ > 5:
                    break
                continue
            except OSError:
                break
            if not count:
                break
            frames += self._reader.filled(count)
        for message_type, _, _, _ in frames:
            assert message_type == protocol.WINDOW or protocol.WELCOME <= message_type <= protocol.END, (
                "a worker sent a message of type %d" % message_type
            )
        return frames

    def close(self):
        self._sock.close()
        self._worker_turn()

    def _worker_turn(self):
        for _ in range(4):
            self._worker._sockets.poll(0)
            self._worker._work()
            self._worker._flush()
