/** Selections of jobs and messages (docs/contract/jobs.md#selections): counted first, and exactly these are changed. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CHANGED_AT_ONCE } from "../../../src/contracts/limits/responses.ts";
import { eventually } from "../../harness/eventually.ts";
import { TestServer } from "../../harness/server.ts";

/** Fails with items that say how while the file `broken` exists, and waits for the file `open` with those that say so. */
const MENDABLE = `
import os, time
class PythonPredictor:
    def __init__(self, config): self.config = config
    def predict(self, payload, batch_id):
        with open(self.config["log"], "a") as log: log.write(batch_id + "\\n")
        for item in payload:
            while item.get("waits") and not os.path.exists(self.config["open"]): time.sleep(0.02)
            if item.get("bad") and os.path.exists(self.config["broken"]): raise ValueError(item["bad"])
`;

const server = new TestServer();
const [log, broken, open] = ["log", "broken", "open"].map((name) => join(server.dir, name)) as [
  string,
  string,
  string,
];
const admin = () => readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
beforeAll(async () => {
  await server.start();
  const config = `config: {log: "${log}", broken: "${broken}", open: "${open}"}`;
  const api = (name: string) =>
    `- name: ${name}\n  kind: BatchAPI\n  predictor: {path: p.py, ${config}}\n  compute: {cpu: 100m}\n`;
  server.deploy({ "p.py": MENDABLE, "quern.yaml": api("one") + api("two") });
});
afterAll(() => server.stop());
beforeEach(() => {
  writeFileSync(log, "");
  writeFileSync(broken, "");
  rmSync(open, { force: true });
});

interface Answer {
  status: number;
  selection_id: string;
  count: number;
  changed: number;
  skipped: { id: string; reason: string }[];
  skipped_count: number;
  code?: string;
  message?: string;
}
const post = async (path: string, body?: unknown, key = admin()): Promise<Answer> => {
  const headers = { authorization: `Bearer ${key}`, connection: "close" };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await server.fetch(path, { method: "POST", headers, ...sent });
  return { ...((await response.json()) as Answer), status: response.status };
};
const select = (asked: unknown, key?: string) => post("/-/selections", asked, key);
const act = ({ selection_id }: Answer, action: string, key?: string) =>
  post(`/-/selections/${selection_id}/${action}`, undefined, key);
const submit = (api: string, items: unknown[], queue?: string, more = {}) =>
  server.submit(api, {
    workers: 1,
    item_list: { items, batch_size: 1 },
    ...(queue === undefined ? {} : { queue_dead_letter_queue: { arn: queue, max_receive_count: 1 } }),
    ...more,
  });
const messages = async (queue: string, query = "") => {
  const headers = { authorization: `Bearer ${admin()}`, connection: "close" };
  const response = await server.fetch(`/-/queues/${queue}/messages?${query}`, { headers });
  const { messages: all } = (await response.json()) as { messages: { message_id: string; body: string }[] };
  return all;
};
const bodies = async (queue: string) => (await messages(queue)).map(({ body }) => body).sort();
const status = async (api: string, id: string) => (await server.job(api, id)).status.replace("status_", "");

const IN_PROGRESS = ["status_enqueuing", "status_running"];

describe("a selection of jobs", () => {
  it("is counted, and stops exactly the jobs that it had, however many come later", async () => {
    const waits = [{ waits: true }];
    const mine = [await submit("one", waits), await submit("one", waits), await submit("one", waits)];
    const other = await submit("two", waits);
    const selection = await select({ jobs: { api: "one", status: ["status_enqueuing", "status_running"] } });
    expect(selection).toMatchObject({ status: 201, kind: "jobs", count: 3 });
    const later = await submit("one", waits);
    await server.fetch(`/one/${mine[1]}`, { method: "DELETE" });
    await server.ended("one", mine[1]!);
    expect(await act(selection, "stop")).toEqual({
      ...{ status: 200, changed: 2, skipped_count: 1 },
      skipped: [{ id: mine[1], reason: "it has ended (status_stopped)" }],
    });
    for (const id of mine) expect((await server.ended("one", id)).status).toBe("status_stopped");
    expect(await status("one", later)).not.toBe("stopped");
    expect(await status("two", other)).not.toBe("stopped");
    const rest = await select({ jobs: { status: ["status_enqueuing", "status_running"] } });
    expect(await act(rest, "stop")).toMatchObject({ changed: 2 });
  });

  it("pauses, continues, resumes and redrives, and says why some jobs are not changed", async () => {
    const ids = [await submit("one", [{ waits: true }]), await submit("one", [{ bad: "x" }])];
    await server.ended("one", ids[1]!);
    const selection = await select({ jobs: { ids: [...ids, "0".repeat(26)] } });
    expect(selection.count).toBe(2);
    const ended = (reason: string) => ({
      ...{ status: 200, changed: 1, skipped_count: 1 },
      skipped: [{ id: expect.any(String), reason: expect.stringContaining(reason) }],
    });
    expect(await act(selection, "pause")).toMatchObject(ended("it has ended"));
    expect((await server.job("one", ids[0]!)).paused_time).toBeDefined();
    expect(await act(selection, "unpause")).toMatchObject(ended("is not paused"));
    rmSync(broken);
    expect(await act(selection, "redrive")).toMatchObject(ended("it has not ended"));
    expect((await server.ended("one", ids[1]!)).status).toBe("status_succeeded");
    expect(await act(selection, "stop")).toMatchObject({ changed: 1, skipped_count: 1 });
    await server.ended("one", ids[0]!);
    writeFileSync(open, "");
    expect(await act(selection, "resume")).toMatchObject(ended("all its batches are settled"));
    expect((await server.ended("one", ids[0]!)).status).toBe("status_succeeded");
  });

  it("is lost with its controller, and the error says to count again", async () => {
    const selection = await select({ jobs: {} });
    process.kill(server.child("controller"), "SIGKILL");
    await eventually("another controller answers", async () => (await server.fetch("/one")).status === 200);
    const answer = await act(selection, "stop");
    expect(answer).toMatchObject({ status: 404, code: "selection_not_found" });
    expect(answer.message).toContain("select and count again");
  });

  it.each([
    [{}, "give jobs or messages"],
    [{ jobs: {}, messages: { queue: "q" } }, "give jobs or messages"],
    [{ jobs: { state: 1 } }, "state"],
    [{ jobs: { status: ["running"] } }, "jobs/status"],
    [{ jobs: { created_before: "noon" } }, "created_before must be a time"],
    [{ jobs: { ids: [], search: "x" } }, "ids go with api alone"],
    [{ messages: { queue: "q", ids: new Array(1_001).fill("x") } }, "at most 1000 ids"],
  ])("is refused as %j", async (asked, why) => {
    expect(await select(asked)).toMatchObject({ status: 400, message: expect.stringContaining(why) });
  });

  it("has no other actions than those of its kind", async () => {
    const answer = await act(await select({ jobs: {} }), "remove");
    expect(answer).toMatchObject({ status: 400, message: expect.stringContaining("stop, resume, redrive") });
  });
});

describe("a selection of messages", () => {
  it("is redriven in one round of each job, and only the batches of its messages run", async () => {
    const bad = (why: string) => ({ bad: why });
    const first = await submit("one", [bad("red"), bad("blue"), {}, bad("red")], "redriven");
    const second = await submit("two", [bad("red"), bad("blue")], "redriven");
    await Promise.all([server.ended("one", first), server.ended("two", second)]);
    writeFileSync(log, "");
    rmSync(broken);
    const selection = await select({ messages: { queue: "redriven", search: "ValueError: red" } });
    expect(selection).toMatchObject({ status: 201, kind: "messages", count: 3 });
    expect(await act(selection, "redrive")).toMatchObject({ changed: 3, skipped_count: 0 });
    const ends = await Promise.all([server.ended("one", first), server.ended("two", second)]);
    expect(ends.map(({ batch_metrics }) => batch_metrics.succeeded)).toEqual([3, 1]);
    expect(readFileSync(log, "utf8").trim().split("\n").sort()).toEqual(
      [`${first}-0`, `${first}-3`, `${second}-0`].sort(),
    );
    expect(await bodies("redriven")).toEqual(['[{"bad":"blue"}]', '[{"bad":"blue"}]']);
    // Repeated, it changes nothing.
    expect(await act(selection, "redrive")).toMatchObject({ changed: 0, skipped_count: 3 });
    expect((await server.job("one", first)).batch_metrics.succeeded).toBe(3);
  });

  it("leaves messages of batches that have succeeded since, and of jobs that run or were stopped early", async () => {
    const redriven = await submit("one", [{ bad: "x" }], "left");
    const stopped = await submit("one", [{ bad: "x" }, { waits: true }, { waits: true }], "left");
    await server.ended("one", redriven);
    await eventually("the other has a message", async () => (await messages("left")).length === 2);
    const selection = await select({ messages: { queue: "left" } });
    rmSync(broken);
    await server.fetch(`/one/${redriven}/redrive`, { method: "POST" });
    await server.ended("one", redriven);
    const reasons = async () => (await act(selection, "redrive")).skipped.map(({ reason }) => reason).sort();
    expect(await reasons()).toEqual([
      "its items have succeeded since",
      expect.stringContaining("it has not ended"),
    ]);
    await server.fetch(`/one/${stopped}`, { method: "DELETE" });
    await server.ended("one", stopped);
    expect(await reasons()).toContainEqual(expect.stringContaining("resume it first"));
    expect(await messages("left")).toHaveLength(2);
    expect(await act(selection, "remove")).toMatchObject({ changed: 2, skipped_count: 0 });
    expect(await messages("left")).toEqual([]);
  });

  it("redrives the guilty items that it has, and no others of their batches", async () => {
    const items = [{ bad: "red" }, {}, { bad: "blue" }, {}];
    const split = { item_list: { items, batch_size: 4 }, on_failure: "isolate" };
    const id = await submit("one", [], "guilty", split);
    await server.ended("one", id);
    expect(await bodies("guilty")).toEqual(['[{"bad":"blue"}]', '[{"bad":"red"}]']);
    rmSync(broken);
    const selection = await select({ messages: { queue: "guilty", search: "ValueError: red" } });
    expect(await act(selection, "redrive")).toMatchObject({ changed: 1 });
    expect((await server.ended("one", id)).status).toBe("status_completed_with_failures");
    expect(await bodies("guilty")).toEqual(['[{"bad":"blue"}]']);
    expect(await act(await select({ messages: { queue: "guilty" } }), "redrive")).toMatchObject({
      changed: 1,
    });
    expect((await server.ended("one", id)).status).toBe("status_succeeded");
    expect(await messages("guilty")).toEqual([]);
  });

  it("is searched in items and errors, and found page by page", async () => {
    await server.ended(
      "one",
      await submit("one", [{ bad: "ünique", id: 7 }, { bad: "x" }, { bad: "y", id: 77 }], "seen"),
    );
    const found = async (text: string) =>
      (await messages("seen", `search=${encodeURIComponent(text)}`)).map(({ body }) => body);
    expect(await found("ünique")).toHaveLength(1);
    expect(await found("ValueError: x")).toEqual(['[{"bad":"x"}]']);
    expect(await found("p.py")).toHaveLength(3);
    expect(await found('"id":7')).toHaveLength(2);
    expect(await found("nothing of this")).toEqual([]);
  });

  it("is redriven and removed by the command line, which counts", async () => {
    await server.ended("one", await submit("one", [{ bad: "red" }, { bad: "blue" }], "by-cli"));
    rmSync(broken);
    const cli = (...args: string[]) => server.cli(["queue", ...args]);
    expect(cli("redrive", "by-cli", "--search", "ValueError: red")).toMatchObject({
      ...{ code: 0, out: "1 of 1 messages of by-cli redriven\n" },
    });
    expect(cli("messages", "by-cli", "--search", "ValueError: red").out).toBe("no messages\n");
    expect(cli("remove", "by-cli", "-y")).toMatchObject({
      code: 0,
      out: "1 of 1 messages of by-cli removed\n",
    });
    expect(cli("remove", "by-cli", "-y").out).toBe("0 of 0 messages of by-cli removed\n");
    expect(cli("redrive", "no-such-queue")).toMatchObject({ code: 4 });
  });
});

// A server that has a key asks for one from then on.
describe("a selection on a server with keys", () => {
  it("belongs to the key that made it, which needs the API of its jobs", async () => {
    const id = await submit("one", [{ waits: true }]);
    const key = server.cli(["keys", "create", "--scope", "submit", "--api", "one"]).out.trim();
    expect(await select({ jobs: { api: "two" } }, key)).toMatchObject({ status: 403, code: "forbidden" });
    expect(await select({ jobs: {} }, key)).toMatchObject({ status: 403, code: "forbidden" });
    expect(await select({ messages: { queue: "letters" } }, key)).toMatchObject({ status: 403 });
    const selection = await select({ jobs: { api: "one", ids: [id] } }, key);
    expect(await act(selection, "stop")).toMatchObject({ status: 404, code: "selection_not_found" });
    expect(await act(selection, "stop", key)).toMatchObject({ changed: 1 });
    const audit = server.cli(["audit"]).out;
    expect(audit).toContain("stop: 1 of 1 jobs changed, 0 skipped");
    expect(audit).not.toContain("POST /-/selections 201");
  });

  it("is left by a key that is revoked in the middle of an action", async () => {
    const headers = { authorization: `Bearer ${admin()}`, connection: "close" };
    const job = { workers: 1, item_list: { items: [{ waits: true }], batch_size: 1 } };
    const stopped = async () => {
      const response = await server.fetch("/-/jobs?api=two&status=status_stopped&limit=1", { headers });
      return ((await response.json()) as { count: number }).count;
    };
    const first = await stopped();
    for (let n = 0; n < 100; n++) await post("/two", job);
    const made = server.cli(["keys", "create", "--scope", "submit", "--api", "two", "-o", "json"]).out;
    const { key, id } = JSON.parse(made) as { key: string; id: string };
    const selection = await select({ jobs: { api: "two", status: IN_PROGRESS } }, key);
    const stopping = act(selection, "stop", key);
    await eventually("it has begun", async () => (await stopped()) > first);
    await server.fetch(`/-/keys/${id}`, { method: "DELETE", headers });
    const before = await stopped();
    expect(await stopping).toMatchObject({ status: 401, code: "unauthorized" });
    const after = await stopped();
    // Those that had begun: one each at a time.
    expect(after).toBeLessThanOrEqual(before + CHANGED_AT_ONCE);
    const rest = await act(await select({ jobs: { api: "two", status: IN_PROGRESS } }), "stop");
    expect(rest).toMatchObject({ changed: selection.count - (after - first) });
  });
});
