/** Projects whose code calls other APIs of the server by QUERN_API_URL. */

/** Does what its payload says: `{call: "/name", body}` calls, `{do: …}` see below. */
export const CALLER = `
import json, os, time, urllib.error, urllib.request

def call(path, body=None, method=None, headers=None):
    data = None if body is None else json.dumps(body).encode()
    url = os.environ["QUERN_API_URL"] + path
    request = urllib.request.Request(url, data, {"content-type": "application/json", **(headers or {})}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return {"status": answer.status, "headers": dict(answer.headers), "body": json.loads(answer.read() or b"null")}
    except urllib.error.HTTPError as error:
        return {"status": error.code, "body": json.loads(error.read() or b"null")}

class PythonPredictor:
    def __init__(self, config):
        self.first = call("/inner", "in init") if config.get("call") else None
        self.touched = config.get("touch")

    def predict(self, payload):
        if isinstance(payload, list): return [self.obey(item) for item in payload]
        return self.obey(payload)

    def obey(self, item):
        do = item.get("do")
        if do == "first": return self.first
        if do == "env": return {name: value for name, value in os.environ.items()}
        if do == "pid": return os.getpid()
        if do == "print": print("calling", os.environ["QUERN_API_URL"] + "/inner"); os.system("echo by a child $QUERN_API_URL >&2")
        if do == "raise": raise ValueError("no answer from %s/inner" % os.environ["QUERN_API_URL"])
        if "touch" in item: open(item["touch"], "w").close()
        while "await" in item and not os.path.exists(item["await"]): time.sleep(0.02)
        if "write" in item:
            with open(item["write"], "w") as out: out.write(json.dumps(call(item["call"], item.get("body"))))
        if "call" in item: return call(item["call"], item.get("body"), item.get("method"), item.get("headers"))

    def on_job_complete(self):
        if self.touched:
            with open(self.touched, "w") as out: out.write(json.dumps(call("/inner", "at the end")))
`;

export const INNER = `
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload): return {"inner": payload}
`;

/**
 * `inner` is reached from inside only; its address is not its name. `later`: the file that is written when a job of
 * `jobs` ends.
 */
export function callers(later: string): Record<string, string> {
  const closed = "{api_gateway: none, auth: key, endpoint: /deep/in}";
  return {
    "caller.py": CALLER,
    "inner.py": INNER,
    "quern.yaml": [
      `- {name: inner, predictor: {path: inner.py}, networking: ${closed}}`,
      "- {name: inner-jobs, kind: BatchAPI, predictor: {path: caller.py}, networking: {api_gateway: none, endpoint: /deep/jobs}}",
      "- {name: caller, predictor: {path: caller.py, config: {call: true}, threads_per_process: 4}}",
      "- {name: other, predictor: {path: caller.py, expose_errors: true}}",
      `- {name: jobs, kind: BatchAPI, predictor: {path: caller.py, config: {touch: ${later}}}}`,
      "- {name: split, kind: TrafficSplitter, apis: [{name: inner, weight: 100}]}\n",
    ].join("\n"),
  };
}
