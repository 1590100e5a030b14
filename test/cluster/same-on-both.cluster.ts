/**
 * The same projects and the same commands on one machine and in pods of a real cluster, with the same outcome: the
 * commands of the demo, and a job over S3 with failing items, dead letters and an output. They compare what both say.
 */
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readOutput } from "../harness/outputs.ts";
import { root, TestServer } from "../harness/server.ts";
import { startS3, type TestS3 } from "../harness/stores.ts";
import { EngineServer } from "./engine-server.ts";

const EXAMPLES = join(root, "examples");
const IRIS = join(EXAMPLES, "iris");
const PRICES = `
class PythonPredictor:
    def __init__(self, config, job_spec):
        self.price = config["price"]
    def predict(self, payload, batch_id):
        return [self.total(order) for order in payload]
    def total(self, order):
        if order["id"] % 50 == 7:
            raise ValueError("order %d has no pieces" % order["id"])
        return {"id": order["id"], "total": order["pieces"] * self.price}
    def on_job_complete(self):
        pass
`;
const PRICES_YAML = `
- name: prices
  kind: BatchAPI
  predictor: {path: predictor.py, config: {price: 3}}
  compute: {cpu: 50m, mem: 128Mi}
`;
const ORDERS = 600;
const BAD = ORDERS / 50;

let s3: TestS3;
let engine: EngineServer;
let machine: TestServer;
beforeAll(async () => {
  s3 = await startS3();
  const env = { ...s3.env, AWS_REGION: "us-east-1", QUERN_ALLOW_LOCAL_ROOT: EXAMPLES };
  machine = new TestServer(env);
  await machine.start();
  engine = await EngineServer.start("both", env);
  for (const part of [0, 1, 2]) await s3.put(`orders/${part}.jsonl`, ordersOf(part));
}, 120_000);
afterAll(async () => {
  await machine?.stop();
  await engine?.stop();
  await s3?.stop();
}, 180_000);

function ordersOf(part: number): string {
  const ids = Array.from({ length: ORDERS / 3 }, (_, at) => (part * ORDERS) / 3 + at);
  return ids.map((id) => `${JSON.stringify({ id, pieces: id % 11 })}\n`).join("");
}

/** What a command prints; it must end well. Without blocking this process, which has the proxy of S3. */
async function says(server: TestServer, ...args: string[]): Promise<string> {
  const { code, out, err } = await server.cliBeside(args);
  expect([args, code, code === 0 ? "" : err]).toEqual([args, 0, ""]);
  return out;
}

/** The commands of `npm run demo`, with the output in the server: a pod has no directory of the machine. */
async function demo(server: TestServer) {
  await says(server, "deploy", IRIS, "--wait");
  const flower = await says(server, "predict", "iris", join(IRIS, "flower.json"));
  const job = {
    ...{ workers: 2, output: {} },
    delimited_files: { store_paths: [`file://${IRIS}/iris.jsonl`], batch_size: 5 },
  };
  const submission = join(server.dir, "job.json");
  writeFileSync(submission, JSON.stringify(job));
  const id = (await says(server, "job", "submit", "iris-batch", submission)).trim();
  await says(server, "job", "wait", "iris-batch", id);
  const { status, batch_metrics, total_batch_count } = await server.job("iris-batch", id);
  const results = await says(server, "job", "results", "iris-batch", id);
  return { flower, status, total_batch_count, succeeded: batch_metrics.succeeded, results };
}

async function priced(server: TestServer, name: string) {
  const queue = `unpriced-${name}-${randomBytes(4).toString("hex")}`;
  server.deploy({ "quern.yaml": PRICES_YAML, "predictor.py": PRICES });
  const id = await server.submit("prices", {
    workers: 2,
    on_failure: "isolate",
    delimited_files: { store_paths: ["s3://bucket/orders/"], batch_size: 8 },
    queue_dead_letter_queue: { arn: queue, max_receive_count: 2 },
    output: { store_path: `s3://bucket/priced-${name}` },
  });
  const { status, batch_metrics, total_batch_count } = await server.ended("prices", id);
  await says(server, "job", "verify", "prices", id);
  const { rows, manifest } = readOutput(join(s3.directory, `priced-${name}`, id));
  const failures = JSON.parse(await says(server, "job", "failures", "prices", id, "-o", "json")) as {
    failures: { batch_index: number; payload: unknown; error: { type: string; message: string } }[];
  };
  const letters = JSON.parse(await says(server, "queue", "messages", queue, "-o", "json")) as {
    messages: { body: string }[];
  };
  return {
    ...{ status, total_batch_count, failed: batch_metrics.failed, succeeded: batch_metrics.succeeded },
    ...{ rows, counts: manifest.batches },
    failures: failures.failures
      .map(({ batch_index, payload, error }) => ({ batch_index, payload, ...error, traceback: "" }))
      .sort((a, b) => a.batch_index - b.batch_index || (a.message < b.message ? -1 : 1)),
    letters: letters.messages.map(({ body }) => body).sort(),
  };
}

describe("on one machine and in pods", () => {
  it("the demo's commands have the same outcome", async () => {
    const [inPods, here] = [await demo(engine.server), await demo(machine)];
    expect(inPods).toEqual(here);
    expect(inPods).toMatchObject({ status: "status_succeeded", total_batch_count: 30, succeeded: 30 });
    const truth = readFileSync(join(IRIS, "iris.jsonl"), "utf8").trim().split("\n");
    const rows = inPods.results.trim().split("\n");
    const right = rows.filter(
      (row, at) =>
        (JSON.parse(row) as { prediction: string }).prediction ===
        (JSON.parse(truth[at]!) as { species: string }).species,
    );
    expect([rows.length, right.length > 140]).toEqual([150, true]);
    const pods = engine.podNames("quern.dev/api=iris");
    expect(pods).toHaveLength(1);
    expect(await says(engine.server, "describe", "iris")).toContain(pods[0]);
  });

  it("a job over S3 has the same output, failures and dead letters", async () => {
    const [inPods, here] = [await priced(engine.server, "pods"), await priced(machine, "here")];
    expect(inPods).toEqual(here);
    expect(inPods).toMatchObject({ status: "status_completed_with_failures", total_batch_count: ORDERS / 8 });
    expect([inPods.rows.length, inPods.failures.length, inPods.letters.length]).toEqual([
      ...[ORDERS - BAD, BAD, BAD],
    ]);
  });

  it("a declarative application is refused in pods, with the reason and the way out", () => {
    const { code, err } = engine.server.cli(["deploy", join(EXAMPLES, "iris-app")]);
    expect(code).toBe(1);
    expect(err).toMatch(
      /declarative applications need a server with --engine local: .*; deploy the application there/s,
    );
  });
});
