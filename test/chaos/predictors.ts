/** The project of a chaos run. Its predictors keep a record of their own, line by line, which no kill takes away. */

const BATCH = `
import os, time
class PythonPredictor:
    """B: begun; E: done; F: failed on purpose; X: not the items of this batch."""
    def __init__(self, config):
        self.directory, self.size, self.slow_s = config["directory"], config["size"], config["slow_s"]
        self.text = "x" * config["row_bytes"]
        self.log = os.open(self.directory + "/record", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    def predict(self, payload, batch_id):
        index = int(batch_id.rsplit("-", 1)[1])
        self.note("B", index)
        if payload[0]["id"] != index * self.size: self.note("X", index)
        if self.slow_s: time.sleep(self.slow_s)
        how = payload[0].get("fail")
        if how == "always" or how == "first" and self.is_first(index):
            self.note("F", index)
            raise ValueError("batch %d" % index)
        self.note("E", index)
        return [{"id": item["id"], "text": self.text} for item in payload]
    def note(self, what, index):
        os.write(self.log, b"%s %d %d\\n" % (what.encode(), index, os.getpid()))
    def is_first(self, index):
        try:
            os.close(os.open("%s/first-%d" % (self.directory, index), os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            return True
        except FileExistsError:
            return False
`;

const ASKED = `
import os, time
class PythonPredictor:
    def __init__(self, config):
        self.log = os.open(config["record"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    def predict(self, payload):
        os.write(self.log, b"%s %d\\n" % (payload["id"].encode(), os.getpid()))
        time.sleep(payload["seconds"])
        return {"id": payload["id"], "length": len(payload["pad"])}
`;

/** Each of one process a replica; with threads, requests begin in another order than they came in. */
export const APIS = ["single", "threads"];

/** `record`: the file of the real-time APIs' predictors. */
export function chaosProject(record: string): Record<string, string> {
  const predictor = (more: string) =>
    `{path: asked.py, config: {record: ${JSON.stringify(record)}}, timeout: 60s${more}}`;
  return {
    "quern.yaml": `
- name: single
  predictor: ${predictor("")}
  autoscaling: {min_replicas: 2, max_replicas: 2}
- name: threads
  predictor: ${predictor(", threads_per_process: 4")}
  autoscaling: {min_replicas: 1, max_replicas: 1}
- name: jobs
  kind: BatchAPI
  predictor: {path: batch.py}
`,
    "asked.py": ASKED,
    "batch.py": BATCH,
  };
}
