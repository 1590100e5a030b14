/** Jobs with guilty items: what they call, what fails, and what is in their output. */
import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { parseRows } from "./outputs.ts";
import type { TestServer } from "./server.ts";

/**
 * Logs each call of `predict()` to the file `log` of its config: the batch, and how many items it has. Items with `do` are
 * guilty, unless the file `fixed` exists. More items than `fits` need 300 MiB.
 */
export const GUILTY = `
import json, os, time
class PythonPredictor:
    def __init__(self, config):
        self.config = config
    def predict(self, payload, batch_id):
        with open(self.config["log"], "a") as log: log.write("%s %d\\n" % (batch_id, len(payload)))
        pause = self.config.get("pause")
        if pause and len(payload) < pause["below"]:
            open(pause["reached"], "w").close()
            while not os.path.exists(pause["go"]): time.sleep(0.01)
        if not os.path.exists(self.config["log"] + ".fixed"):
            for item in payload:
                do = item.get("do")
                if do == "raise": raise ValueError("no good: %d" % item["id"])
                if do == "segfault": os.kill(os.getpid(), 11)
                if do == "hang": time.sleep(100)
                if do == "hog": self.hog()
            if len(payload) > self.config.get("fits", len(payload)): self.hog()
        if self.config.get("returns") == "sum": return sum(item["id"] for item in payload)
        return [item["id"] for item in payload]
    def hog(self):
        held = b"x" * (300 << 20)
        time.sleep(100)
`;

export interface GuiltyFailure {
  batch_index: number;
  item_index?: number;
  item_count?: number;
  source?: { path: string; line?: number };
  receive_count: number;
  error: { type: string; message: string };
  payload: { id: number }[];
}

/** The calls of `predict()` so far: how many items each had, by batch id. */
export function callsOf(log: string): { batchId: string; items: number }[] {
  return readFileSync(log, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => ({ batchId: line.split(" ")[0]!, items: Number(line.split(" ")[1]) }));
}

export async function failuresOf(server: TestServer, id: string, query = ""): Promise<GuiltyFailure[]> {
  const response = await server.fetch(`/jobs/${id}/failures${query}`);
  return ((await response.json()) as { failures: GuiltyFailure[] }).failures;
}

/** Fails unless the committed rows are those of these items, each under its own index. `batches`: by batch. */
export async function expectResults(
  server: TestServer,
  id: string,
  batches: readonly (readonly { id: number }[])[],
  isGood: (item: { id: number }) => boolean,
): Promise<void> {
  const response = await server.fetch(`/jobs/${id}/results`);
  const rows = parseRows(await response.text());
  const expected = batches.flatMap((batch, batch_index) =>
    batch.flatMap((item, item_index) =>
      isGood(item) ? [{ batch_index, item_index, prediction: item.id }] : [],
    ),
  );
  expect(rows.length).toBe(expected.length);
  expect(rows).toEqual(expected);
}
