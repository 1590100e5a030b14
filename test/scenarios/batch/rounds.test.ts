/** docs/contract/jobs.md#rounds: when each round of a job began, how and by whom, and what became of its batches. */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jobRoundsSchema } from "../../../src/contracts/http/round-operations.ts";
import { eventually } from "../../harness/eventually.ts";
import { TestServer } from "../../harness/server.ts";

const PREDICTOR = `
import os, time
class PythonPredictor:
    def __init__(self, config): self.repaired = config["repaired"]
    def predict(self, payload):
        while os.path.exists(self.repaired + ".hold"): time.sleep(0.02)
        for item in payload:
            if item % 4 == 1 and not os.path.exists(self.repaired): raise ValueError("no caption")
            if item % 4 == 2: raise KeyError("https://me:s3cr3t@store/x")
        return payload
`;
const server = new TestServer();
const repaired = join(server.dir, "repaired");
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const admin = () => readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
const keyOf = (...args: string[]) => server.cli(["keys", "create", ...args]).out.trim();
let submitter = "";
let robot = "";

const post = async (path: string, key: string, body?: object) => {
  const headers = { ...bearer(key), "content-type": "application/json" };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await server.fetch(path, { method: "POST", headers, ...sent });
  expect([response.status, await response.clone().text()]).toEqual([200, expect.any(String)]);
  return (await response.json()) as { job_id: string };
};
const roundsOf = async (job: string, key = admin()) => {
  const response = await server.fetch(`/jobs/${job}/rounds`, { headers: bearer(key) });
  return jobRoundsSchema.parse(await response.json()).rounds;
};
const ended = (job: string) =>
  eventually("the round has ended", async () => (await roundsOf(job)).at(-1)!.ended_time !== null);
const submit = async () => {
  const items = Array.from({ length: 8 }, (_, item) => item);
  return (await post("/jobs", submitter, { workers: 1, item_list: { items, batch_size: 1 } })).job_id;
};

describe("the rounds of a job", () => {
  beforeAll(async () => {
    await server.start();
    const predictor = `{path: p.py, config: {repaired: ${repaired}}}`;
    await server.deployBeside({
      "quern.yaml": `- name: jobs\n  kind: BatchAPI\n  compute: {cpu: 100m}\n  predictor: ${predictor}\n`,
      "p.py": PREDICTOR,
    });
    submitter = keyOf("--scope", "submit", "--api", "jobs", "--name", "the feed");
    robot = keyOf("--scope", "admin", "--name", "the robot");
  });
  afterAll(() => server.stop());

  it("say who submitted, redrove and resumed it, and what became of the batches of each", async () => {
    const job = await submit();
    await ended(job);
    writeFileSync(repaired, "");
    await post(`/jobs/${job}/redrive`, robot, { error: "no caption" });
    await ended(job);
    await post(`/jobs/${job}/redrive`, admin());
    await ended(job);
    const rounds = await roundsOf(job);
    const failures = { status: "status_completed_with_failures" };
    expect(rounds).toMatchObject([
      {
        round: 1,
        how: "submitted",
        by_name: "the feed",
        selection: null,
        batches: 8,
        succeeded: 4,
        failed: 4,
      },
      { round: 2, how: "redriven", by_name: "the robot", batches: 2, succeeded: 2, failed: 0, ...failures },
      { round: 3, how: "redriven", by: "admin-token", batches: 2, succeeded: 0, failed: 2, ...failures },
    ]);
    expect(rounds[1]!.selection).toBe('errors with "no caption"');
    for (const [at, { begun_time, ended_time }] of rounds.entries()) {
      expect(Date.parse(ended_time!)).toBeGreaterThanOrEqual(Date.parse(begun_time));
      if (at > 0)
        expect(Date.parse(begun_time)).toBeGreaterThanOrEqual(Date.parse(rounds[at - 1]!.ended_time!));
    }
    const { out } = await server.cliBeside(["job", "rounds", "jobs", job]);
    expect(out).toMatch(/1 submitted .* the feed .* 8 +4 +4 +completed with failures/);
    expect(out).toMatch(/2 redriven .* the robot +errors with "no caption" .* 2 +2 +0 /);
  });

  it("show a round that runs, and one that was stopped and resumed, over a kill of the controller", async () => {
    writeFileSync(`${repaired}.hold`, "");
    const job = await submit();
    expect(await roundsOf(job)).toMatchObject([{ round: 1, ended_time: null, succeeded: 0 }]);
    await eventually("it runs", async () => (await roundsOf(job))[0]!.status === "status_running");
    await server.fetch(`/jobs/${job}`, { method: "DELETE", headers: bearer(robot) });
    rmSync(`${repaired}.hold`);
    await ended(job);
    await post(`/jobs/${job}/resume`, robot);
    await ended(job);
    process.kill(server.child("controller"), "SIGKILL");
    await eventually("the next controller answers", () =>
      roundsOf(job).then(
        () => true,
        () => false,
      ),
    );
    const [first, second] = await roundsOf(job);
    expect(first).toMatchObject({ status: "status_stopped", reason: "the job was stopped on request" });
    expect(second).toMatchObject({ round: 2, how: "resumed", by_name: "the robot", selection: null });
    expect(first!.succeeded! + second!.succeeded!).toBe(6);
    expect(second!.batches).toBe(8 - first!.succeeded! - first!.failed!);
    expect(existsSync(`${repaired}.hold`)).toBe(false);
  });

  it("name nobody to a key that may only submit, and hide secrets in what was selected", async () => {
    const job = await submit();
    await ended(job);
    await post(`/jobs/${job}/redrive`, robot, { error: "https://me:s3cr3t@store/x" });
    await ended(job);
    const [first, second] = await roundsOf(job, submitter);
    expect([first!.by, first!.by_name, second!.by, second!.by_name]).toEqual([null, null, null, null]);
    expect(second!.selection).toMatch(/^errors with "https:/);
    expect(second!.selection).not.toContain("s3cr3t");
  });
});
