/** A project, and jobs of it whose result a test can check to the last prediction. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { RUN } from "./kubectl.ts";
import type { Pod } from "./pod.ts";

const PREDICTOR = `
import os, time
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        if isinstance(payload, list):
            time.sleep(0.02)
            return [item * item for item in payload]
        return {"echo": payload, "user": os.getuid()}
`;
const APIS = `
- name: squares
  kind: BatchAPI
  predictor: {path: predictor.py}
  compute: {cpu: 200m}
- name: echo
  kind: RealtimeAPI
  predictor: {path: predictor.py}
  compute: {cpu: 200m}
`;
const ITEMS = Array.from({ length: 1_000 }, (_, id) => id);
const BATCH_SIZE = 2;

export function deploySquares(pod: Pod): void {
  const project = join(RUN, "project");
  mkdirSync(project, { recursive: true });
  writeFileSync(join(project, "predictor.py"), PREDICTOR);
  writeFileSync(join(project, "quern.yaml"), APIS);
  pod.quern(["deploy", project, "--wait"]);
}

/** A job of which some batches are done and some are not. */
export async function jobInTheMiddle(pod: Pod): Promise<string> {
  const items = { items: ITEMS, batch_size: BATCH_SIZE };
  const id = await pod.submit("squares", { workers: 2, output: {}, item_list: items });
  await pod.jobIs("squares", id, "has begun", ({ batch_metrics }) => batch_metrics.succeeded > 20);
  return id;
}

/** Every prediction once, in the order of the input. */
export async function expectExact(pod: Pod, id: string): Promise<void> {
  const job = await pod.jobIs("squares", id, "ends", ({ end_time }) => end_time !== undefined);
  expect(job).toMatchObject({
    status: "status_succeeded",
    batch_metrics: { succeeded: ITEMS.length / BATCH_SIZE, failed: 0 },
  });
  const rows = (await (await pod.fetch(`/squares/${id}/results`)).text()).trim().split("\n");
  const predictions = rows.map((row) => (JSON.parse(row) as { prediction: number }).prediction);
  expect(predictions).toEqual(ITEMS.map((item) => item * item));
}
