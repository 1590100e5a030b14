/** The overview and its stream (docs/contract/operations.md#overview), over real HTTP. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { OverviewShown } from "../../../src/contracts/http/overview-operations.ts";
import { eventually } from "../../harness/eventually.ts";
import { FollowedOverview } from "../../harness/followed-overview.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

const server = new TestServer({ QUERN_CPUS: "4" });
const open = join(server.dir, "open");
const admin = () => readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
const headers = () => ({ authorization: `Bearer ${admin()}`, connection: "close" });
beforeAll(async () => {
  await server.start();
  server.deploy(project(OBEDIENT, { batch: "  compute: {cpu: 0.5}\n" }));
});
afterAll(() => server.stop());
const followers: FollowedOverview[] = [];
afterEach(async () => {
  for (const follower of followers.splice(0)) await follower.leave();
});

const read = async () =>
  (await (await server.fetch("/-/overview", { headers: headers() })).json()) as OverviewShown;
const follow = (key = admin()) => {
  const follower = new FollowedOverview(server.baseUrl, key);
  followers.push(follower);
  return follower;
};
const api = (shown: OverviewShown | undefined, name: string) => shown?.apis.find((one) => one.name === name);
const submit = (items: unknown[], more = {}) =>
  server.submit("jobs", { workers: 1, item_list: { items, batch_size: 1 }, ...more });

describe("the overview", () => {
  it("has the server, its compute, its APIs and their traffic", async () => {
    for (let i = 0; i < 5; i++) await server.post("/echo", { id: i });
    await server.post("/echo", { do: "raise" });
    await eventually("the requests are reported", async () => api(await read(), "echo")?.recent.at(-1) !== 0);
    await eventually("all of them", async () => {
      const { recent } = api(await read(), "echo")!;
      return recent.reduce((sum, count) => sum + count, 0) === 6;
    });
    const { time, server: about, compute, apis, job_counts } = await read();
    expect(Date.parse(time) - Date.parse(about.started_time)).toBeGreaterThan(0);
    expect(Date.parse(time) - Date.parse(about.started_time)).toBeLessThan(300_000);
    expect(about).toMatchObject({ status: "ok", reasons: [], version: expect.any(String) });
    expect(compute.cpus.total).toBe(4);
    expect(apis.map(({ name }) => name)).toEqual(["echo", "jobs"]);
    expect(apis[0]).toMatchObject({
      ...{ kind: "RealtimeAPI", status: "live", message: null, ready_replicas: 1, requested_replicas: 1 },
      ...{ running_jobs: null, paused_time: null, in_flight: 0, queue_depth: 0 },
    });
    expect(apis[0]!.requests_per_s).toBeGreaterThan(0);
    expect(apis[0]!.errors_per_s).toBeGreaterThan(0);
    expect(apis[0]!.latency_p99_s).toBeGreaterThanOrEqual(apis[0]!.latency_p50_s!);
    expect(apis[1]).toMatchObject({ kind: "BatchAPI", running_jobs: 0, latency_p50_s: null });
    expect(Object.keys(job_counts)).toEqual(expect.arrayContaining(["enqueuing", "running", "succeeded"]));
  });

  it("follows a job from its submission to its end, and says how it ended", async () => {
    rmSync(open, { force: true });
    const follower = follow();
    const shown = () => follower.shown;
    await eventually("the first event", () => shown() !== undefined);
    const before = shown()!.job_counts.completed_with_failures!;
    const id = await submit([{ id: 1 }, { do: "raise" }, { do: "await", path: open }], {
      queue_dead_letter_queue: { arn: "letters", max_receive_count: 1 },
    });
    const mine = () => shown()!.jobs.find(({ job_id }) => job_id === id);
    await eventually("two batches are settled", () => mine()?.in_queue === 1 && mine()?.failed === 1);
    expect(mine()).toMatchObject({
      ...{ api_name: "jobs", status: "status_running", total_batch_count: 3, succeeded: 1, workers: 1 },
      ...{ running_workers: 1, waiting: null, paused_time: null, round_time: null },
    });
    expect(api(shown(), "jobs")?.running_jobs).toBe(1);
    writeFileSync(open, "");
    await eventually("the job is gone", () => mine() === undefined);
    // The first requests may have been slow, which is told of their API for a minute.
    const lines = () => shown()!.attention.filter(({ kind }) => kind === "job" || kind === "queue");
    const attention = () => lines().map(({ kind, name, title }) => `${kind} ${name}: ${title}`);
    await eventually(
      "its end and its message need attention",
      () => attention().length === 2,
      10_000,
      () => JSON.stringify(attention()),
    );
    expect(attention()).toEqual([
      "job jobs: 1 of 3 batches failed",
      "queue letters: 1 message in the dead letter queue",
    ]);
    expect(lines()[0]).toMatchObject({ job_id: id, severity: "warning" });
    expect(shown()!.job_counts.completed_with_failures).toBe(before + 1);
    expect(follower.events[0]).toBe("overview");
    expect(new Set(follower.events.slice(1))).toEqual(new Set(["changes"]));
  });

  it("tells each change to all who follow it within two seconds, and what they have is what it is", async () => {
    const [one, other] = [follow(), follow()];
    await eventually("both have it", () => one.shown !== undefined && other.shown !== undefined);
    await server.fetch("/-/apis/jobs/pause", { method: "POST", headers: headers() });
    const isPaused = (follower: FollowedOverview) => api(follower.shown, "jobs")?.paused_time !== null;
    await eventually("both know", () => isPaused(one) && isPaused(other), 2_000);
    expect(one.shown!.attention.map(({ title }) => title)).toContainEqual(expect.stringMatching(/^paused: /));
    const late = follow();
    await eventually("a later one has it", () => late.shown !== undefined);
    expect(isPaused(late)).toBe(true);
    await server.fetch("/-/apis/jobs/unpause", { method: "POST", headers: headers() });
    await eventually("all know", () => ![one, other, late].some(isPaused));
    await eventually("all have what it is", async () => {
      const { time: _, ...now } = await read();
      return [one, other, late].every(({ shown }) => {
        const { time: __, ...known } = shown!;
        return JSON.stringify(known) === JSON.stringify(now);
      });
    });
  });

  it("says which API cannot start, and is degraded until it can", async () => {
    const follower = follow();
    const predictor =
      "class PythonPredictor:\n  def __init__(self, config): 1 / 0\n  def predict(self, payload): pass\n";
    const config = "- name: broken\n  predictor: {path: p.py}\n";
    server.deploy({ "p.py": predictor, "quern.yaml": config }, { wait: false });
    await eventually("it is in error", () => api(follower.shown, "broken")?.status === "error");
    await eventually("it needs attention", () => follower.shown!.attention[0]?.name === "broken");
    expect(follower.shown!.attention[0]).toMatchObject({ kind: "api", severity: "error", job_id: null });
    expect(follower.shown!.server).toMatchObject({
      status: "degraded",
      reasons: [expect.stringContaining("broken")],
    });
    server.cli(["delete", "broken", "-y"]);
    await eventually("it is gone", () => api(follower.shown, "broken") === undefined);
    await eventually("all is well", () => follower.shown!.server.status === "ok");
  });

  it("names an API whose requests are slow, as an explanation of it does", async () => {
    const follower = follow();
    const slow = { do: "sleep", seconds: 1.1 };
    for (let i = 0; i < 3; i++)
      await Promise.all([slow, slow].map((payload) => server.post("/echo", payload)));
    const titles = () => follower.shown?.attention.map(({ name, title }) => `${name}: ${title}`) ?? [];
    await eventually(
      "it is named",
      () => titles().some((title) => /^echo: .*slow/.test(title)),
      30_000,
      () => titles().join("\n"),
    );
    expect(titles().join("\n")).toMatch(
      /^echo: predict\(\) itself is slow: .*; `quern explain echo` says why$/m,
    );
  });

  it("has when the last round of a redriven job began", async () => {
    const id = await submit([{ do: "raise" }]);
    const { end_time } = await server.ended("jobs", id);
    await server.fetch("/-/apis/jobs/pause", { method: "POST", headers: headers() });
    expect(server.cli(["job", "redrive", "jobs", id]).code).toBe(0);
    const job = async () => (await read()).jobs.find(({ job_id }) => job_id === id);
    await eventually("it is in the overview", async () => (await job()) !== undefined);
    const { round_time } = (await job())!;
    expect(Date.parse(round_time!)).toBeGreaterThanOrEqual(Date.parse(end_time!));
    await server.fetch("/-/apis/jobs/unpause", { method: "POST", headers: headers() });
    await server.ended("jobs", id);
  });

  it("ends within two seconds of the revocation of its key", async () => {
    const created = server.cli(["keys", "create", "--scope", "view", "-o", "json"]);
    const { id, key } = JSON.parse(created.out) as { id: string; key: string };
    const follower = follow(key);
    await eventually("the first event", () => follower.shown !== undefined);
    const response = await server.fetch(`/-/keys/${id}`, { method: "DELETE", headers: headers() });
    expect(response.status).toBe(200);
    const revokedMs = performance.now();
    await follower.ended;
    expect(performance.now() - revokedMs).toBeLessThan(2_000);
    expect(follower.error).toMatchObject({ code: "unauthorized" });
  });

  it("is there again after the controller is killed, with the requests before and meanwhile", async () => {
    const sum = async () => api(await read(), "echo")!.recent.reduce((all, count) => all + count, 0);
    const before = await sum();
    process.kill(server.child("controller"), "SIGKILL");
    for (let i = 0; i < 4; i++) await server.post("/echo", { id: i });
    let after = 0;
    await eventually(
      "they are counted",
      async () => {
        after = await sum().catch(() => 0);
        return after === before + 4;
      },
      30_000,
      () => `${after} after ${before}`,
    );
    expect(before).toBeGreaterThan(0);
    const follower = follow();
    await eventually("it is followed", () => follower.shown !== undefined);
    await eventually("the replica is adopted", () => api(follower.shown, "echo")?.ready_replicas === 1);
    expect(api(follower.shown, "echo")?.status).toBe("live");
  });
});
