/**
 * Jobs and batch APIs that are paused: what runs ends, nothing new begins, and all of it survives a restart. And jobs of
 * a higher priority.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { OBEDIENT } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

const server = new TestServer({ QUERN_CPUS: "1" });
beforeAll(async () => {
  await server.start();
  const compute = "  compute: {cpu: 100m}\n";
  const yaml = `- name: jobs\n  kind: BatchAPI\n  predictor: {path: p.py}\n${compute}`;
  server.deploy({ "quern.yaml": yaml, "p.py": OBEDIENT });
});
afterAll(() => server.stop());

const quern = (...args: string[]) => server.cli(args);
const view = (id: string) => server.job("jobs", id);
const sleeps = (count: number, seconds = 0.1) =>
  Array.from({ length: count }, () => ({ do: "sleep", seconds }));
const submit = (items: object[], more: object = {}) =>
  server.submit("jobs", { workers: 2, item_list: { items, batch_size: 1 }, ...more });
const succeeded = async (id: string) => (await view(id)).batch_metrics.succeeded;

/** Waits until no worker is left. Returns how many of a job's batches have succeeded. */
async function left(id: string): Promise<number> {
  await eventually("its workers have left", () => server.workers().length === 0);
  return succeeded(id);
}

async function restart(): Promise<void> {
  await server.stopProcesses();
  await server.start();
}

describe("a paused job", () => {
  it("begins no new batch, ends those in hand, stays paused over a restart, and goes on", async () => {
    const id = await submit(sleeps(40));
    await eventually("it runs", async () => (await succeeded(id)) > 2);
    expect(quern("job", "pause", "jobs", id)).toMatchObject({
      code: 0,
      out: `paused job ${id}: no new batch begins\n`,
    });
    const done = await left(id);
    expect(await view(id)).toMatchObject({
      status: "status_running",
      waiting: `paused: no new batch begins; \`quern job unpause jobs ${id}\` continues it`,
      paused_time: expect.any(String),
    });
    await restart();
    expect(await succeeded(id)).toBe(done);
    expect(quern("job", "unpause", "jobs", id)).toMatchObject({ code: 0, out: `continued job ${id}\n` });
    const ended = await server.ended("jobs", id);
    expect(ended).toMatchObject({ status: "status_succeeded", batch_metrics: { succeeded: 40, failed: 0 } });
    expect(ended.paused_time).toBeUndefined();
    expect(quern("job", "pause", "jobs", id).err).toMatch(/cannot be paused: it has ended/);
    expect(quern("job", "unpause", "jobs", id).err).toMatch(/is not paused/);
  }, 60_000);

  it("that is continued while its last batches still run begins again after them", async () => {
    const path = join(server.dir, "may-end");
    const id = await submit([{ do: "await", path }, ...sleeps(5)], { workers: 1 });
    await eventually("its first batch runs", async () => (await view(id)).worker_counts?.running === 1);
    expect(quern("job", "pause", "jobs", id).code).toBe(0);
    expect(quern("job", "unpause", "--all")).toMatchObject({ code: 0, out: "continued 1 job\n" });
    writeFileSync(path, "");
    expect((await server.ended("jobs", id)).batch_metrics).toMatchObject({ succeeded: 6, failed: 0 });
  }, 60_000);

  it("that is paused and continued again and again while a batch runs has one run, and none once it is stopped", async () => {
    const [first, second] = [0, 1].map((n) => join(server.dir, `again-${n}`));
    const again = async (id: string) => {
      for (const verb of ["pause", "unpause", "pause", "unpause"])
        await server.post(`/jobs/${id}/${verb}`, {});
    };
    const running = async (id: string) =>
      eventually("its first batch runs", async () => (await view(id)).worker_counts?.running === 1);
    const id = await submit([{ do: "await", path: first }, ...sleeps(10)], { workers: 1 });
    await running(id);
    await again(id);
    writeFileSync(first!, "");
    expect(await server.ended("jobs", id)).toMatchObject({
      status: "status_succeeded",
      batch_metrics: { succeeded: 11, failed: 0 },
    });
    const stopped = await submit([{ do: "await", path: second }, ...sleeps(10)], { workers: 1 });
    await running(stopped);
    await again(stopped);
    expect(quern("job", "stop", "jobs", stopped).code).toBe(0);
    writeFileSync(second!, "");
    expect((await server.ended("jobs", stopped)).status).toBe("status_stopped");
    expect(await left(stopped)).toBeLessThan(2);
  }, 60_000);

  it("is not timed out by the time in which it is paused", async () => {
    const id = await submit(sleeps(30, 0.3), { timeout: 15 });
    await eventually("it runs", async () => (await succeeded(id)) > 0);
    expect((await server.post(`/jobs/${id}/pause`, {})).status).toBe(200);
    const paused = Date.parse((await view(id)).paused_time!);
    await eventually("its timeout is over", () => Date.now() - paused > 16_000);
    expect((await server.post(`/jobs/${id}/unpause`, {})).status).toBe(200);
    expect((await server.ended("jobs", id)).status).toBe("status_succeeded");
  }, 60_000);

  it("can be paused at any moment of its start, and loses nothing", async () => {
    for (let n = 0; n < 5; n++) {
      const id = await submit(sleeps(200, 0));
      const answer = await server.post(`/jobs/${id}/pause`, {});
      if (answer.status === 200) {
        await left(id);
        await server.post(`/jobs/${id}/unpause`, {});
      }
      expect((await server.ended("jobs", id)).batch_metrics).toMatchObject({ succeeded: 200, failed: 0 });
    }
  }, 60_000);

  it("can be stopped", async () => {
    const id = await submit(sleeps(100));
    expect(quern("job", "pause", "jobs", id).code).toBe(0);
    await left(id);
    expect(quern("job", "stop", "jobs", id).code).toBe(0);
    expect((await server.ended("jobs", id)).status).toBe("status_stopped");
  }, 60_000);
});

describe("a job of a higher priority", () => {
  it("gets compute before those that were submitted earlier", async () => {
    const large = { workers: 10, item_list: { items: sleeps(400, 0.05), batch_size: 1 } };
    const first = await server.submit("jobs", large);
    await eventually("it has all compute", async () => (await view(first)).worker_counts?.running === 10);
    const second = await server.submit("jobs", large);
    const urgent = await server.submit("jobs", { ...large, priority: 100 });
    expect((await server.ended("jobs", urgent)).status).toBe("status_succeeded");
    expect((await view(urgent)).priority).toBe(100);
    expect((await view(second)).end_time).toBeUndefined();
    for (const id of [first, second])
      expect((await server.ended("jobs", id)).batch_metrics).toMatchObject({ succeeded: 400, failed: 0 });
  }, 90_000);
});

describe("a paused API", () => {
  it("pauses its jobs and those that are submitted later, and says so, until it is continued", async () => {
    const before = await submit(sleeps(40));
    await eventually("it runs", async () => (await succeeded(before)) > 0);
    expect(quern("pause", "jobs")).toMatchObject({
      code: 0,
      out: "paused jobs: no new batch begins, of 1 job in progress\n",
    });
    await left(before);
    const later = await submit(sleeps(3));
    expect(await view(later)).toMatchObject({
      waiting: "paused with its API: no new batch begins; `quern unpause jobs` continues it",
    });
    expect(quern("get", "jobs").out).toMatch(/paused since .*: no new batch begins; `quern unpause jobs`/);
    expect(quern("job", "unpause", "jobs", later).err).toMatch(/`quern unpause jobs` continues all its jobs/);
    await restart();
    expect(quern("job", "pause", "jobs", later).code).toBe(0);
    expect(quern("unpause", "jobs")).toMatchObject({ code: 0, out: "continued jobs, with 1 job\n" });
    expect((await server.ended("jobs", before)).batch_metrics).toMatchObject({ succeeded: 40, failed: 0 });
    expect(await view(later)).toMatchObject({
      batch_metrics: { succeeded: 0 },
      paused_time: expect.any(String),
    });
    expect(quern("job", "unpause", "jobs", later).code).toBe(0);
    expect((await server.ended("jobs", later)).status).toBe("status_succeeded");
  }, 90_000);

  it("is a batch API", () => {
    const yaml = "- name: live\n  predictor: {path: p.py}\n  compute: {cpu: 100m}\n";
    server.deploy({ "quern.yaml": yaml, "p.py": OBEDIENT });
    expect(quern("pause", "live").err).toMatch(
      /live is a RealtimeAPI; only the jobs of a BatchAPI can be paused/,
    );
  });
});
