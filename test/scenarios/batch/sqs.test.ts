/** Messages to SQS queues, through a real server that speaks it (docs/contract/failing-batches.md#sqs-queues). */
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isSqsInstalled, startSqs, type TestSqs } from "../../harness/elasticmq.ts";
import { eventually } from "../../harness/eventually.ts";
import { root, TestServer } from "../../harness/server.ts";

/** Longer than the timeout of a request, so that messages are sent again after they arrived. */
const OUTAGE_MS = Number(process.env.QUERN_TEST_OUTAGE_MS ?? 14_000);
const PREDICTOR = `
import time
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        time.sleep(0.005)
        for item in payload:
            if item.get("bad"): raise ValueError(item["bad"] * item.get("times", 1))
`;

describe.runIf(isSqsInstalled)("a dead letter queue of SQS", () => {
  let sqs: TestSqs;
  let server: TestServer;

  beforeAll(async () => {
    sqs = await startSqs();
    server = new TestServer(sqs.env);
    await server.start();
    server.deploy({
      "quern.yaml": "- name: jobs\n  kind: BatchAPI\n  predictor: {path: predictor.py}\n",
      "predictor.py": PREDICTOR,
    });
  }, 90_000);
  afterAll(async () => {
    await server?.stop();
    await sqs?.stop();
  });

  const submit = (queue: string, items: unknown[], max_receive_count = 1) =>
    server.submit("jobs", {
      workers: 2,
      queue_dead_letter_queue: { arn: sqs.arn(queue), max_receive_count },
      item_list: { items, batch_size: 1 },
    });
  const waiting = async (queue: string) => {
    const { out } = server.cli(["queue", "get", "-o", "json"]);
    const { queues } = JSON.parse(out) as { queues: { name: string; messages: number }[] };
    return queues.find(({ name }) => name === sqs.arn(queue))?.messages ?? 0;
  };

  it("gets each message with its attributes and an error of the allowed size", async () => {
    const large = "x".repeat(200_000);
    const id = await submit("letters", [{ bad: "no\u0000good" }, {}, { bad: "y", times: 300_000, large }], 2);
    await server.ended("jobs", id);
    await eventually("all is sent", async () => (await waiting("letters")) === 0);
    const letters = await sqs.take("letters");
    expect(letters).toHaveLength(2);
    const small = letters.find(({ Body }) => Body!.includes("good"))!;
    expect(JSON.parse(small.Body!)).toEqual([{ bad: "no\u0000good" }]);
    const attributes = Object.fromEntries(
      Object.entries(small.MessageAttributes!).map(([name, { StringValue }]) => [name, StringValue]),
    );
    expect(attributes).toMatchObject({
      api_name: "jobs",
      job_id: id,
      batch_id: `${id}-0`,
      receive_count: "2",
      round: "1",
    });
    expect(attributes.error).toContain("ValueError");
    const cut = letters.find(({ Body }) => Body!.includes("large"))!;
    expect(cut.Body!.length + cut.MessageAttributes!.error!.StringValue!.length).toBeLessThan(262_144);
  });

  it("gets each guilty item of a batch that was split, also if it is a FIFO queue", async () => {
    const items = Array.from({ length: 8 }, (_, id) => (id === 2 || id === 5 ? { id, bad: "b" } : { id }));
    // SQS refuses such a character in an attribute.
    const path = server.writeInput(
      "a\u0001b.jsonl",
      items.map((item) => `${JSON.stringify(item)}\n`).join(""),
    );
    const id = await server.submit("jobs", {
      ...{ workers: 1, on_failure: "isolate" },
      queue_dead_letter_queue: { arn: sqs.arn("letters.fifo"), max_receive_count: 1 },
      delimited_files: { store_paths: [path], batch_size: 8 },
    });
    await server.ended("jobs", id);
    await eventually("all is sent", async () => (await waiting("letters.fifo")) === 0);
    const letters = await sqs.take("letters.fifo");
    const about = letters.map(({ Body, MessageAttributes }) => [
      ...[JSON.parse(Body!), MessageAttributes!.item_index!.StringValue],
      ...[MessageAttributes!.source_line!.StringValue, MessageAttributes!.source_path!.StringValue],
    ]);
    expect(about.sort()).toEqual([
      [[items[2]], "2", "3", path.replace("\u0001", "\ufffd")],
      [[items[5]], "5", "6", path.replace("\u0001", "\ufffd")],
    ]);
  });

  it("gets the batches that Cortex's example could not handle, under the older field names", async () => {
    const project = join(root, "test", "former-examples", "dead-letters");
    expect(server.cli(["deploy", project])).toMatchObject({ code: 0 });
    const items = [
      { id: "hut", area: 20, rooms: 1 },
      { id: "ruin", area: 90 },
      { id: "villa", area: 210, rooms: 7 },
    ];
    const id = await server.submit("house-prices", {
      workers: 1,
      sqs_dead_letter_queue: { arn: sqs.arn("letters"), max_receive_count: 2 },
      item_list: { items, batch_size: 1 },
    });
    const { status, batch_metrics } = await server.ended("house-prices", id);
    expect([status, batch_metrics]).toEqual([
      "status_completed_with_failures",
      expect.objectContaining({ succeeded: 2, failed: 2 }),
    ]);
    await eventually("it is sent", async () => (await waiting("letters")) === 0);
    const [letter, ...more] = await sqs.take("letters");
    expect([JSON.parse(letter!.Body!), more]).toEqual([[items[1]], []]);
    expect(letter!.MessageAttributes!.error!.StringValue).toContain("KeyError: 'rooms'");
    const log = server.cli(["logs", "house-prices", id]).out;
    expect(log).toContain("hut costs 58000\n");
    expect(log).toContain("villa costs 391000\n");
  });

  it("does not delay the job while unreachable, and gets every message afterwards; a FIFO queue gets each once", async () => {
    const items = Array.from({ length: 300 }, (_, id) => (id % 3 === 0 ? { id, bad: "b" } : { id }));
    const jobs = [await submit("letters", items), await submit("letters.fifo", items)];
    await eventually("letters are on their way", async () => {
      const views = await Promise.all(jobs.map((id) => server.job("jobs", id)));
      return views.every(({ batch_metrics }) => batch_metrics.failed > 5);
    });
    sqs.freeze();
    const frozen = performance.now();
    for (const id of jobs)
      expect((await server.ended("jobs", id)).status).toBe("status_completed_with_failures");
    expect(performance.now() - frozen).toBeLessThan(10_000);
    expect(await waiting("letters")).toBeGreaterThan(0);
    expect(await waiting("letters.fifo")).toBeGreaterThan(0);
    process.kill(server.child("controller"), "SIGKILL");
    await setTimeout(OUTAGE_MS - (performance.now() - frozen));
    sqs.thaw();
    const isEmpty = async () => (await waiting("letters")) + (await waiting("letters.fifo")) === 0;
    await eventually("all is sent", isEmpty, 60_000);
    const expected = Array.from({ length: 100 }, (_, i) => 3 * i);
    const idsOf = async (queue: string) =>
      (await sqs.take(queue))
        .map(({ Body }) => (JSON.parse(Body!) as { id: number }[])[0]!.id)
        .sort((a, b) => a - b);
    expect([...new Set(await idsOf("letters"))]).toEqual(expected);
    expect(await idsOf("letters.fifo")).toEqual(expected);
    const log = server.cli(["logs", "jobs", jobs[0]!]).out;
    expect(log.includes("messages wait for arn:aws:sqs:us-east-1:000000000000:letters")).toBe(true);
  }, 180_000);

  it.each(["", "?dryRun=true"])("is refused with the submission%s if it does not exist", async (query) => {
    const response = await server.post(`/jobs${query}`, {
      workers: 1,
      queue_dead_letter_queue: { arn: sqs.arn("nobody"), max_receive_count: 1 },
      item_list: { items: [{}], batch_size: 1 },
    });
    expect([response.status, await response.text()]).toEqual([
      400,
      expect.stringContaining("there is no queue"),
    ]);
  });
});
