/** A project for the dashboard's tests: an API that answers, one that cannot start, and jobs of which some batches fail. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestServer } from "./server.ts";

const REALTIME = `
class PythonPredictor:
    def __init__(self, config): print("loaded the model")
    def predict(self, payload):
        if payload == {"fail": True}: raise ValueError("no such flower")
        return {"species": "setosa", "exact": 12345678901234567890}
`;
const BROKEN = `
class PythonPredictor:
    def __init__(self, config): raise RuntimeError("the model file has a wrong checksum")
    def predict(self, payload): return 1
`;
const BATCH = `
import os, time
class PythonPredictor:
    def __init__(self, config): self.config = config
    def predict(self, payload):
        time.sleep(self.config.get("seconds", 0))
        repaired = os.path.exists(self.config["repaired"])
        for item in payload:
            if item % 10 == 7 and not repaired: raise ValueError(f"item {item} has no caption")
            if item % 10 == 9: raise KeyError("image_url")
        return payload
`;

/** Its existence lets the items pass whose caption is missing. */
export const repairedFile = (server: TestServer) => join(server.inputs, "repaired");

export function deployDashboardProject(server: TestServer): void {
  const config = { repaired: repairedFile(server) };
  const apis = [
    { name: "flowers", predictor: { path: "flowers.py" }, compute: { cpu: "100m" } },
    { name: "broken", predictor: { path: "broken.py" }, compute: { cpu: "100m" } },
    {
      name: "captions",
      kind: "BatchAPI",
      predictor: { path: "captions.py", config },
      compute: { cpu: "100m" },
    },
  ];
  const files = { "flowers.py": REALTIME, "broken.py": BROKEN, "captions.py": BATCH };
  server.deploy({ "quern.yaml": JSON.stringify(apis), ...files }, { wait: false });
}

/** 40 batches of one item: four without a caption, four without an address. */
export const failingJob = {
  workers: 1,
  item_list: { items: Array.from({ length: 40 }, (_, item) => item), batch_size: 1 },
  queue_dead_letter_queue: { arn: "captions-failed", max_receive_count: 1 },
  output: {},
};

export function repair(server: TestServer): void {
  writeFileSync(repairedFile(server), "");
}
