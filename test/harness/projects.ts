/** Small projects that tests deploy. */

/** A real-time API `echo` and a batch API `jobs` over the same class. */
export function project(
  predictor: string,
  extra: { realtime?: string; batch?: string; predictorFields?: string } = {},
): Record<string, string> {
  const fields = extra.predictorFields ?? "";
  return {
    "quern.yaml": `- name: echo\n  predictor: {path: predictor.py${fields}}\n${extra.realtime ?? ""}- name: jobs\n  kind: BatchAPI\n  predictor: {path: predictor.py${fields}}\n${extra.batch ?? ""}`,
    "predictor.py": predictor,
  };
}

export const ECHO = `
class PythonPredictor:
    def __init__(self, config):
        self.config = config
    def predict(self, payload):
        return payload
`;

/** Does what the payload (or the first item of a batch) asks for. */
export const OBEDIENT = `
import ctypes, os, re, signal, subprocess, sys, threading, time

class PythonPredictor:
    def __init__(self, config):
        self.config = config
        self.log = config.get("log")

    def predict(self, payload):
        items = payload if isinstance(payload, list) else [payload]
        if self.log:
            with open(self.log, "a") as log:
                log.write("".join("%s\\n" % (item.get("id") if isinstance(item, dict) else item) for item in items))
        results = [self.obey(item) for item in items]
        return results if isinstance(payload, list) else results[0]

    def obey(self, item):
        do = item.get("do") if isinstance(item, dict) else None
        if isinstance(item, dict) and "touch" in item: open(item["touch"], "w").close()
        if do == "raise": raise ValueError("no good: %s" % item.get("id"))
        if do == "http": raise Teapot()
        if do == "sleep": time.sleep(item["seconds"])
        if do == "await":
            while not os.path.exists(item["path"]): time.sleep(0.02)
        if do == "hold": hold(item["seconds"])
        if do == "exit": os._exit(3)
        if do == "sysexit": sys.exit(4)
        if do == "segfault": ctypes.string_at(0)
        if do == "kill": os.kill(os.getpid(), signal.SIGKILL)
        if do == "print": print("x" * 1000 + "\\n" * 3, end=""); [print("y" * 999) for _ in range(item["times"])]
        if do == "fork":
            if os.fork() == 0: return "from the child"
        if do == "linger" and os.fork() == 0:
            time.sleep(10); os._exit(0)
        if do == "stdin": return sys.stdin.read()
        if do == "chdir": os.chdir("/")
        if do == "thread":
            thread = threading.Thread(target=lambda: 1 / 0); thread.start(); thread.join()
        if do == "signals":
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1): signal.signal(number, signal.SIG_IGN)
        if do == "child": subprocess.Popen(["sleep", "300"])
        if do == "set": return {1, 2}
        if do == "env": return dict(os.environ)
        if do == "pid": return os.getpid()
        return item.get("id") if isinstance(item, dict) else item

class Teapot(Exception):
    status_code = 418
    detail = {"short": "and stout"}

def hold(seconds):
    """Holds the interpreter inside C code: PyDLL keeps the lock, unlike CDLL."""
    ctypes.PyDLL(None).usleep(ctypes.c_uint(int(seconds * 1000000)))
`;

/** Never ends: a stream of ten minutes if the payload has "stream", else a prediction of ten minutes. */
export const ENDLESS = `
import time

class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        def pieces():
            for i in range(6000):
                time.sleep(0.1)
                yield i
        return pieces() if "stream" in payload else time.sleep(600)
`;

/** Its process id, again and again without an end if the payload has "stream", else once. */
export const PID_STREAM = `
import asyncio, os

class PythonPredictor:
    def __init__(self, config): pass
    async def predict(self, payload):
        return self.pieces() if payload.get("stream") else os.getpid()
    async def pieces(self):
        while True:
            yield os.getpid()
            await asyncio.sleep(0.2)
`;
