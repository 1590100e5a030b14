/** A redrive of messages that a kill interrupts: repeated, it loses no message and runs nothing twice. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { REDRIVE_KILL_POINTS } from "../../../src/base/kill-points.ts";
import { eventually } from "../../harness/eventually.ts";
import { TestServer } from "../../harness/server.ts";

const MENDABLE = `
import os
class PythonPredictor:
    def __init__(self, config): self.config = config
    def predict(self, payload, batch_id):
        if payload[0]["bad"] and os.path.exists(self.config["broken"]): raise ValueError("no good")
        with open(self.config["log"], "a") as log: log.write(batch_id + "\\n")
`;
const BATCHES = 60;

describe("a controller killed in a redrive of messages", () => {
  let server: TestServer;
  afterEach(() => server.stop());

  it.each(REDRIVE_KILL_POINTS.flatMap((point) => [point, `${point}:2`]))("at %s", async (point) => {
    server = new TestServer();
    const [log, broken] = [join(server.dir, "log"), join(server.dir, "broken")];
    writeFileSync(broken, "");
    writeFileSync(log, "");
    await server.start({ QUERN_TEST_KILL_AT: point });
    const predictor = `{path: p.py, config: {log: "${log}", broken: "${broken}"}}`;
    server.deploy({
      "p.py": MENDABLE,
      "quern.yaml": `- {name: a, kind: BatchAPI, predictor: ${predictor}}\n`,
    });
    const admin = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    const headers = { authorization: `Bearer ${admin}`, connection: "close" };
    const post = async (path: string, body?: unknown) => {
      const sent = body === undefined ? {} : { body: JSON.stringify(body) };
      const response = await server.fetch(path, { method: "POST", headers, ...sent });
      return { status: response.status, ...((await response.json()) as Record<string, never>) };
    };
    const redrive = async () => {
      const { selection_id } = (await post("/-/selections", {
        messages: { queue: "letters" },
      })) as unknown as {
        selection_id: string;
      };
      return post(`/-/selections/${selection_id}/redrive`);
    };
    const items = Array.from({ length: BATCHES }, (_, i) => ({ bad: i % 3 > 0 }));
    const dead = { arn: "letters", max_receive_count: 1 };
    const job = { workers: 1, item_list: { items, batch_size: 1 }, queue_dead_letter_queue: dead };
    const ids = [await server.submit("a", job), await server.submit("a", job)];
    for (const id of ids) await server.ended("a", id);
    rmSync(broken);
    expect((await redrive()).status).toBe(503);
    await eventually("another controller answers", async () => (await server.fetch("/a")).status === 200);
    expect(await redrive()).toMatchObject({ status: 200 });
    for (const id of ids)
      await eventually("all batches have succeeded", async () => {
        const { batch_metrics, status } = await server.job("a", id);
        return batch_metrics.succeeded === BATCHES && status === "status_succeeded";
      });
    const left = await server.fetch("/-/queues/letters/messages", { headers });
    expect(((await left.json()) as { messages: unknown[] }).messages).toEqual([]);
    const handled = readFileSync(log, "utf8").trim().split("\n");
    expect(new Set(handled).size).toBe(2 * BATCHES);
    // The kill may come while a batch of the first job is in hand, which runs again.
    expect(handled.length).toBeLessThanOrEqual(
      2 * BATCHES + (point.endsWith(":2") || point === "redrive-begun" ? 2048 : 0),
    );
  });
});
