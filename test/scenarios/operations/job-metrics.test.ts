/** What the metrics tell about jobs that wait, jobs that have ended, and the memory of workers. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

const MIB = 1024 * 1024;

describe("the metrics of jobs and workers", () => {
  const server = new TestServer({ QUERN_CPUS: "1.1" });
  beforeAll(async () => {
    await server.start();
    const compute = "  compute: {cpu: 1, mem: 1Gi}\n";
    server.deploy(project(OBEDIENT, { batch: compute, realtime: "  compute: {cpu: 100m}\n" }));
  });
  afterAll(() => server.stop());

  const scrape = async () => {
    const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    const response = await server.fetch("/-/metrics", { headers: { authorization: `Bearer ${token}` } });
    const lines = (await response.text()).split("\n").filter((line) => !line.startsWith("#"));
    const values = new Map(lines.map((line) => line.split(" ") as [string, string]));
    return (sample: string) => Number(values.get(sample) ?? Number.NaN);
  };
  const queued = async () => (await scrape())('quern_jobs_oldest_queued_seconds{api="jobs"}');
  const paths = [1, 2].map((job) => join(server.dir, `job-${job}-may-end`));
  const submit = (path: string) =>
    server.submit("jobs", { workers: 1, item_list: { items: [{ do: "await", path }], batch_size: 1 } });
  const runs = (id: string) =>
    eventually("it runs", async () => (await server.job("jobs", id)).worker_counts?.running === 1);

  it("tell how long the first job has waited, how long jobs took, and what their workers use", async () => {
    const first = await submit(paths[0]!);
    await runs(first);
    expect(await queued()).toBe(0);
    const second = await submit(paths[1]!);
    await eventually("it has waited", async () => (await queued()) > 0.5);
    expect(await queued()).toBeLessThan(60);
    await eventually("both APIs are measured", async () => {
      const value = await scrape();
      return ["jobs", "echo"].every((api) => value(`quern_worker_memory_bytes{api="${api}"}`) > MIB);
    });
    const value = await scrape();
    const bytes = value('quern_worker_memory_bytes{api="jobs"}');
    expect(value('quern_worker_memory_max_bytes{api="jobs"}')).toBe(bytes);
    expect(value('quern_worker_memory_used_ratio{api="jobs"}')).toBeCloseTo(bytes / 1024 / MIB, 6);
    expect(value('quern_worker_memory_used_ratio{api="echo"}')).toBeNaN();
    for (const path of paths) writeFileSync(path, "");
    for (const id of [first, second]) await server.ended("jobs", id);
    expect(await queued()).toBe(0);
    const ended = 'quern_job_duration_seconds_count{api="jobs",status="status_succeeded"}';
    const sum = 'quern_job_duration_seconds_sum{api="jobs",status="status_succeeded"}';
    const atEnd = await scrape();
    expect(atEnd(ended)).toBe(2);
    expect(atEnd(sum)).toBeGreaterThan(0.5);
    await eventually("its workers are gone", async () =>
      Number.isNaN((await scrape())('quern_worker_memory_bytes{api="jobs"}')),
    );
    await server.stopProcesses();
    await server.start();
    const later = await scrape();
    expect([later(ended), later(sum)]).toEqual([2, atEnd(sum)]);
  });
});
