/** Attempts, dead letter queues of Quern, new rounds, and how failures are shown. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

/** Fails while the file `broken` exists. */
const MENDABLE = `
import os, time
class PythonPredictor:
    def __init__(self, config, job_spec=None):
        self.config = config
        self.round = job_spec["round"] if job_spec else 0
    def predict(self, payload, batch_id):
        with open(self.config["log"], "a") as log: log.write("%s %s\\n" % (batch_id[27:], self.round))
        for item in payload:
            if item.get("slow"): time.sleep(item["slow"])
            if item.get("bad") and os.path.exists(self.config["broken"]): raise ValueError("row %d: %s" % (item["id"], item["bad"]))
    def on_job_complete(self):
        with open(self.config["log"], "a") as log: log.write("complete %s\\n" % self.round)
`;

interface Message {
  message_id: string;
  body: string;
  attributes: Record<string, string>;
}

const server = new TestServer();
const log = join(server.dir, "handled.log");
const broken = join(server.dir, "broken");
beforeAll(async () => {
  await server.start();
  const config = `, config: {log: ${JSON.stringify(log)}, broken: ${JSON.stringify(broken)}}`;
  server.deploy(project(OBEDIENT, { predictorFields: config }), { wait: false });
  server.deploy({
    "quern.yaml": `- name: mendable\n  kind: BatchAPI\n  predictor: {path: predictor.py${config}}\n`,
    "predictor.py": MENDABLE,
  });
});
afterAll(() => server.stop());
beforeEach(() => {
  writeFileSync(log, "");
  writeFileSync(broken, "");
});

const admin = () => ({
  headers: { authorization: `Bearer ${readFileSync(join(server.dataDir, "admin-token"), "utf8").trim()}` },
});
const messages = async (queue: string, query = "") =>
  (await (await server.fetch(`/-/queues/${queue}/messages${query}`, admin())).json()) as {
    messages: Message[];
    next_cursor: string | null;
  };
const items = (list: unknown[]) => ({ items: list, batch_size: 1 });
const handled = () => readFileSync(log, "utf8").trim().split("\n");
const post = (path: string, body?: unknown) =>
  server.fetch(path, { method: "POST", ...(body === undefined ? {} : { body: JSON.stringify(body) }) });

describe("a failing batch", () => {
  it("gets one attempt without a dead letter queue", async () => {
    const id = await server.submit("mendable", {
      workers: 2,
      item_list: items([{ id: 1, bad: "x" }, { id: 2 }]),
    });
    const job = await server.ended("mendable", id);
    expect(job.batch_metrics).toMatchObject({ succeeded: 1, failed: 1 });
    expect(handled().filter((line) => line.startsWith("0 "))).toHaveLength(1);
  });

  it("gets max_receive_count attempts with one, and then a message with its items", async () => {
    const id = await server.submit("mendable", {
      workers: 2,
      queue_dead_letter_queue: { arn: "letters.fifo", max_receive_count: 3 },
      item_list: items([{ id: 1, bad: "ü" }, { id: 2 }, { id: 3, bad: "y" }]),
    });
    const job = await server.ended("mendable", id);
    expect(job).toMatchObject({
      status: "status_completed_with_failures",
      batch_metrics: { succeeded: 1, failed: 6 },
      queue_dead_letter_queue: { arn: "letters.fifo", max_receive_count: 3 },
    });
    expect(handled().filter((line) => line.startsWith("0 "))).toHaveLength(3);
    const { messages: letters, next_cursor } = await messages("letters.fifo");
    expect(next_cursor).toBeNull();
    expect(letters.map(({ body }) => body).sort()).toEqual(['[{"id":1,"bad":"ü"}]', '[{"id":3,"bad":"y"}]']);
    const { error, ...attributes } = letters.find(({ body }) => body.includes("ü"))!.attributes;
    expect(attributes).toEqual({
      api_name: "mendable",
      job_id: id,
      batch_id: `${id}-0`,
      receive_count: "3",
      round: "1",
    });
    expect(JSON.parse(error!)).toMatchObject({ type: "ValueError", message: "row 1: ü" });
    const failures = (await (await server.fetch(`/mendable/${id}/failures`)).json()) as {
      failures: unknown[];
    };
    expect(failures.failures).toMatchObject([{ receive_count: 3 }, { receive_count: 3 }]);
  });

  it("succeeds without a message if a later attempt succeeds", async () => {
    const id = await server.submit("mendable", {
      workers: 1,
      queue_dead_letter_queue: { arn: "arn:quern:queue:patient", max_receive_count: 1000 },
      item_list: items([{ id: 1, bad: "x", slow: 0.02 }]),
    });
    await eventually(
      "it has failed twice",
      async () => (await server.job("mendable", id)).batch_metrics.failed >= 2,
    );
    rmSync(broken);
    const job = await server.ended("mendable", id);
    expect(job).toMatchObject({ status: "status_succeeded", batch_metrics: { succeeded: 1 } });
    expect((await messages("patient")).messages).toEqual([]);
  });

  it("keeps its attempts after the controller is killed", async () => {
    const id = await server.submit("mendable", {
      workers: 1,
      queue_dead_letter_queue: { arn: "killed", max_receive_count: 6 },
      item_list: items([{ id: 1, bad: "x", slow: 0.2 }]),
    });
    await eventually(
      "it has failed twice",
      async () => (await server.job("mendable", id)).batch_metrics.failed >= 2,
    );
    process.kill(server.child("controller"), "SIGKILL");
    const job = await server.ended("mendable", id);
    expect(job.batch_metrics.failed).toBe(6);
    expect((await messages("killed")).messages).toHaveLength(1);
  });
});

describe("a dead letter queue", () => {
  it("is named by the job id if it is the job's own, and its batches are counted", async () => {
    const id = await server.submit("mendable", {
      workers: 1,
      item_list: items([{ id: 1 }, { id: 2, bad: "y" }]),
    });
    await server.ended("mendable", id);
    const table = server.cli(["queue", "get", id]).out;
    expect(table).toMatch(/^job +batches in queue +succeeded +failed attempts +total$/m);
    expect(table).toMatch(new RegExp(`^${id} +0 +1 +1 +2$`, "m"));
  });

  it("can be shared by jobs, read page by page, and emptied", async () => {
    for (const bad of ["a", "b"]) {
      const id = await server.submit("mendable", {
        workers: 1,
        queue_dead_letter_queue: { arn: "shared", max_receive_count: 1 },
        item_list: items(Array.from({ length: 3 }, (_, i) => ({ id: i, bad }))),
      });
      await server.ended("mendable", id);
    }
    const first = await messages("shared", "?limit=4");
    const second = await messages("shared", `?limit=4&cursor=${first.next_cursor}`);
    expect([first.messages.length, second.messages.length, second.next_cursor]).toEqual([4, 2, null]);
    const table = server.cli(["queue", "get"]).out;
    expect(table).toMatch(/^queue +messages +oldest$/m);
    expect(table).toMatch(/^shared +6 +\d+s/m);
    const list = async (query: string) => (await server.fetch(`/-/queues${query}`, admin())).json();
    const all = (await list("")) as { queues: { name: string }[]; next_cursor: null };
    expect([all.queues.map(({ name }) => name), all.next_cursor]).toEqual([
      expect.arrayContaining(["shared"]),
      null,
    ]);
    const page = { queues: [expect.objectContaining({ name: "shared", messages: 6 })], next_cursor: null };
    expect(await list("?limit=1&cursor=share")).toEqual(page);
    expect(await list("?cursor=a%20b")).toMatchObject({ status: 400, code: "invalid_request" });
    expect(server.cli(["queue", "get", "--cursor", "shared"]).out).toBe("no more queues\n");
    expect(server.cli(["queue", "messages", "shared"]).out).toMatch(
      /mendable +\S+-0 +1 +ValueError: row 0: a +\[\{"id":0,"bad":"a"\}\]/,
    );
    const one = await server.fetch(`/-/queues/shared/messages/${first.messages[0]!.message_id}`, {
      ...admin(),
      method: "DELETE",
    });
    expect(one.status).toBe(200);
    expect(server.cli(["queue", "purge", "shared"])).toMatchObject({ code: 2 });
    expect(server.cli(["queue", "purge", "shared", "-y"]).out).toBe("purged 5 messages of shared\n");
    expect((await messages("shared")).messages).toEqual([]);
    expect(server.cli(["queue", "get", "not-there"])).toMatchObject({ code: 4 });
  });

  it.each(["", "two words", "arn:aws:sqs:us-east-1:1:", "x".repeat(81), "arn:aws:sns:us-east-1:1:topic"])(
    "cannot be named %j",
    async (arn) => {
      const job = {
        workers: 1,
        queue_dead_letter_queue: { arn, max_receive_count: 1 },
        item_list: items([1]),
      };
      const response = await server.post("/mendable", job);
      expect([response.status, await response.text()]).toEqual([
        400,
        expect.stringContaining("/queue_dead_letter_queue/arn"),
      ]);
    },
  );

  it("is for admins; its counts are for every key that may submit to the job's API", async () => {
    const id = await server.submit("mendable", { workers: 1, item_list: items([{ id: 1 }]) });
    await server.ended("mendable", id);
    expect((await server.fetch("/-/queues/shared")).status).toBe(401);
    expect((await server.fetch("/-/queues")).status).toBe(401);
    expect((await server.fetch(`/-/queues/${id}`, admin())).status).toBe(200);
  });
});

describe("failures", () => {
  it("are counted by error, and exported completely", async () => {
    const bad = (count: number, word: string) =>
      Array.from({ length: count }, (_, i) => ({ id: 1000 + i, bad: word }));
    const id = await server.submit("mendable", {
      workers: 2,
      item_list: items([...bad(70, "no divisor"), { id: 1 }, ...bad(2, "no date")]),
    });
    await server.ended("mendable", id);
    const groups = await (await server.fetch(`/mendable/${id}/failures?group_by=error`)).json();
    expect(groups).toMatchObject({
      groups: [
        {
          ...{ batches: 70, first_batch_index: 0, common_message: "row …: no divisor" },
          error: { type: "ValueError", message: "row 1000: no divisor" },
        },
        {
          ...{ batches: 2, first_batch_index: 71, common_message: "row …: no date" },
          error: { message: "row 1000: no date" },
        },
      ],
    });
    expect(server.cli(["job", "failures", "mendable", id, "--by-error"]).out).toMatch(
      /^batches +first +error\n70 +0 +ValueError: row …: no divisor\n2 +71 +ValueError: row …: no date\n$/,
    );
    const file = join(server.dir, "failures.jsonl");
    expect(server.cli(["job", "failures", "mendable", id, "--export", file]).code).toBe(0);
    const lines = readFileSync(file, "utf8").trim().split("\n");
    expect(lines).toHaveLength(72);
    expect(JSON.parse(lines[70]!)).toMatchObject({
      batch_index: 71,
      payload: [{ id: 1000, bad: "no date" }],
    });
    expect(server.cli(["job", "failures", "mendable", id, "--export", "-"]).out).toBe(
      readFileSync(file, "utf8"),
    );
  });
});

describe("a new round", () => {
  it("lists and redrives the batches of one kind of error", async () => {
    const id = await server.submit("mendable", {
      workers: 1,
      item_list: items([
        { id: 1, bad: "no date" },
        { id: 22, bad: "no divisor" },
        { id: 333, bad: "no date" },
        { id: 4 },
      ]),
    });
    await server.ended("mendable", id);
    const failures = async (like: string) =>
      (await (await server.fetch(`/mendable/${id}/failures?like=${like}`)).json()) as {
        failures: { batch_index: number }[];
      };
    expect((await failures("2")).failures.map(({ batch_index }) => batch_index)).toEqual([0, 2]);
    expect((await failures("3")).failures).toEqual([]);
    expect((await server.fetch(`/mendable/${id}/failures?like=x`)).status).toBe(400);
    expect((await post(`/mendable/${id}/redrive`, { like: 3 })).status).toBe(409);
    expect((await post(`/mendable/${id}/redrive`, { like: -1 })).status).toBe(400);
    rmSync(broken);
    const again = server.cli(["job", "redrive", "mendable", id, "--like", "2", "--wait"]);
    expect(again.err).toContain(`redriving job ${id}: 2 batches`);
    expect((await server.job("mendable", id)).batch_metrics.succeeded).toBe(3);
    expect(
      handled()
        .filter((line) => line.endsWith(" 2") && !line.startsWith("complete"))
        .sort(),
    ).toEqual(["0 2", "2 2"]);
  });

  it("redrives failed batches, all or those with a given error, and runs on_job_complete again", async () => {
    const id = await server.submit("mendable", {
      workers: 2,
      timeout: 3600,
      queue_dead_letter_queue: { arn: "rounds", max_receive_count: 2 },
      item_list: items([{ id: 0, bad: "a" }, { id: 1 }, { id: 2, bad: "b" }, { id: 3, bad: "a" }]),
    });
    expect((await server.ended("mendable", id)).batch_metrics).toMatchObject({ succeeded: 1, failed: 6 });
    expect(server.cli(["job", "redrive", "mendable", id, "--error", "no such words"])).toMatchObject({
      code: 5,
    });
    const second = server.cli(["job", "redrive", "mendable", id, "--error", ": b", "--wait"]);
    expect(second.code).toBe(11);
    expect(second.err).toContain(`redriving job ${id}: 1 batches`);
    const redriven = await server.job("mendable", id);
    expect(redriven).toMatchObject({ round: 2, batch_metrics: { succeeded: 1, failed: 8 } });
    expect(Date.parse(redriven.round_time!)).toBeGreaterThan(Date.parse(redriven.created_time));
    expect(server.cli(["job", "get", "mendable", id]).out).toMatch(/^duration of round 2: /m);
    const { failures } = (await (await server.fetch(`/mendable/${id}/failures`)).json()) as {
      failures: { batch_index: number; round: number; receive_count: number }[];
    };
    const told = failures.map(({ batch_index, round, receive_count: times }) => [batch_index, round, times]);
    // Only the second ran again; its attempts of the round before are not counted.
    expect(told).toEqual([
      [0, 1, 2],
      [2, 2, 2],
      [3, 1, 2],
    ]);
    rmSync(broken);
    expect((await post(`/mendable/${id}/redrive`)).status).toBe(200);
    const job = await server.ended("mendable", id);
    expect(job).toMatchObject({ status: "status_succeeded", batch_metrics: { succeeded: 4, failed: 8 } });
    expect(job.reason).toBeUndefined();
    expect(handled().filter((line) => line.startsWith("complete"))).toEqual([
      "complete 1",
      "complete 2",
      "complete 3",
    ]);
    expect(
      handled()
        .filter((line) => line.endsWith(" 3"))
        .sort(),
    ).toEqual(["0 3", "2 3", "3 3", "complete 3"]);
    expect((await messages("rounds")).messages.map(({ attributes }) => attributes.round).sort()).toEqual([
      "1",
      "1",
      "1",
      "2",
    ]);
    expect((await post(`/mendable/${id}/redrive`)).status).toBe(409);
  });

  it("resumes what a stop, a timeout or the end of enqueuing left", async () => {
    const slow = Array.from({ length: 40 }, (_, id) => ({ id, slow: 0.15 }));
    const id = await server.submit("mendable", { workers: 1, timeout: 3, item_list: items(slow) });
    expect((await post(`/mendable/${id}/resume`)).status).toBe(409);
    const first = await server.ended("mendable", id);
    expect(first).toMatchObject({ status: "status_timed_out", batches_in_queue: 0 });
    const done = first.batch_metrics.succeeded;
    expect(done).toBeLessThan(40);
    const envelope = (await (await post(`/mendable/${id}/resume`)).json()) as {
      job_status: { status: string };
    };
    expect(envelope.job_status.status).toBe("status_running");
    // A round has a timeout of three seconds; on a busy machine the start of a worker takes most of it, or all.
    await eventually("it continues", async () => {
      const { status, batch_metrics } = await server.job("mendable", id);
      if (status === "status_timed_out") await post(`/mendable/${id}/resume`);
      return batch_metrics.succeeded > done;
    });
    await server.fetch(`/mendable/${id}`, { method: "DELETE" });
    const second = await server.ended("mendable", id);
    expect(second.status).not.toBe("status_running");
    for (
      let round = 0;
      round < 40 && (await server.job("mendable", id)).status !== "status_succeeded";
      round++
    ) {
      expect(server.cli(["job", "resume", "mendable", id, "--wait"]).err).toContain("resuming job");
    }
    const job = await server.ended("mendable", id);
    expect(job).toMatchObject({ status: "status_succeeded", batch_metrics: { succeeded: 40, failed: 0 } });
    expect(new Set(handled().map((line) => line.split(" ")[0])).size).toBe(41);
    expect((await post(`/mendable/${id}/resume`)).status).toBe(409);
  }, 300_000);

  it("continues after everything is killed", async () => {
    const id = await server.submit("mendable", {
      workers: 2,
      item_list: items(Array.from({ length: 200 }, (_, i) => ({ id: i, bad: "x", slow: 0.01 }))),
    });
    await server.ended("mendable", id);
    rmSync(broken);
    writeFileSync(log, "");
    await post(`/mendable/${id}/redrive`);
    await eventually(
      "it has begun",
      async () => (await server.job("mendable", id)).batch_metrics.succeeded > 20,
    );
    process.kill(server.child("controller"), "SIGKILL");
    const job = await server.ended("mendable", id);
    expect(job).toMatchObject({ status: "status_succeeded", batch_metrics: { succeeded: 200, failed: 200 } });
    expect(new Set(handled()).size).toBe(201);
  });

  it("is refused if the body of a redrive is invalid", async () => {
    const id = await server.submit("mendable", { workers: 1, item_list: items([{ id: 1 }]) });
    await server.ended("mendable", id);
    expect((await post(`/mendable/${id}/redrive`, { eror: "x" })).status).toBe(400);
    const malformed = await server.fetch(`/mendable/${id}/redrive`, { method: "POST", body: "{" });
    expect(malformed.status).toBe(400);
    expect((await post(`/mendable/${id}/redrive`)).status).toBe(409);
  });
});
