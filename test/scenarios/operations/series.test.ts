/** The series behind the plots, of a server whose processes are killed and whose clock moves on. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Series } from "../../../src/contracts/http/series-operations.ts";
import { eventually } from "../../harness/eventually.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { type Role, root, TestServer } from "../../harness/server.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

describe("the series of a server", () => {
  const server = new TestServer();
  const clock = join(server.dir, "clock");
  const env = {
    NODE_OPTIONS: `--import=${join(root, "test", "harness", "settable-clock.mjs")}`,
    FAKE_CLOCK: clock,
  };
  let stepMs = 0;
  const step = (ms: number) => {
    stepMs += ms;
    writeFileSync(clock, String(stepMs));
  };
  beforeAll(async () => {
    step(0);
    await server.start(env);
    server.deploy(project(OBEDIENT));
  });
  afterAll(() => server.stop());

  const ask = (query: string, method = "GET") => {
    const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    return server.fetch(query, {
      method,
      headers: { authorization: `Bearer ${token}`, connection: "close" },
    });
  };
  /** Since so long ago; the totals by metric too. */
  const series = async (query: string, since = "1h") => {
    const response = await ask(`/-/series?${query}&from=${since}`);
    if (!response.ok) throw new Error(await response.text());
    const answer = (await response.json()) as Series;
    return {
      ...answer,
      total: Object.fromEntries(answer.metrics.map(({ metric, total }) => [metric, total])),
    };
  };
  const values = async (query: string, metric: string) => {
    const { metrics } = await series(query);
    return metrics.find((one) => one.metric === metric)!.values;
  };
  /** Responses with 2xx, 4xx or 5xx in `quern get` and in `/-/metrics`. */
  const shown = async (api: string) => {
    const { metrics } = (await (await ask(`/-/apis/${api}`)).json()) as {
      metrics: { requests: Record<string, number> };
    };
    return Object.values(metrics.requests).reduce((sum, count) => sum + count, 0);
  };
  const exported = async (api: string) => {
    const lines = (await server.metrics()).matchAll(
      /^quern_requests_total\{api="(\w+)",status="\dxx"\} (\d+)$/gm,
    );
    return [...lines].filter(([, name]) => name === api).reduce((sum, [, , count]) => sum + Number(count), 0);
  };
  /** Good ones, ones that fail in the predictor, and broken ones. */
  const send = async (good: number, failing: number, broken: number) => {
    for (let i = 0; i < good; i++) await server.post("/echo", { id: i });
    for (let i = 0; i < failing; i++) await server.post("/echo", { do: "raise" });
    for (let i = 0; i < broken; i++) await server.post("/echo", "{");
  };
  const counted = (requests: number, errors: number) =>
    eventually(`${requests} requests, ${errors} failed`, async () => {
      const { total } = await series("api=echo&metric=requests&metric=errors", "480h");
      return total.requests === requests && total.errors === errors;
    });
  const kill = async (role: Role) => {
    const pid = server.child(role);
    process.kill(pid, "SIGKILL");
    await eventually(`another ${role}`, () => {
      try {
        return server.child(role) !== pid;
      } catch {
        return false;
      }
    });
    await eventually("it answers", async () => (await ask("/-/version").catch(() => undefined))?.ok === true);
  };

  it("agree with `quern get` and `/-/metrics`, over kills of every process", async () => {
    await send(7, 2, 3);
    await counted(12, 2);
    expect([await shown("echo"), await exported("echo")]).toEqual([12, 12]);
    expect((await series("metric=requests")).total.requests).toBe(12);
    const [latency] = (await values("api=echo", "latency_p50")).filter((value) => value !== null);
    expect(latency).toBeGreaterThan(0);
    for (const [times, role] of (["gateway", "controller", "gateway"] as const).entries()) {
      await kill(role);
      await send(3, 1, 0);
      // A gateway reports once a second, and what it has not reported dies with it.
      await counted(12 + 4 * (times + 1), 2 + times + 1);
    }
    expect(await shown("echo")).toBe(24);
  });

  it("have the batches of jobs exactly once, over a kill -9 of the controller", async () => {
    const items = Array.from({ length: 40 }, (_, i) =>
      i % 10 === 9 ? { do: "raise", id: i } : { do: "sleep", seconds: 0.05 },
    );
    const id = await server.submit("jobs", {
      ...{ workers: 1, item_list: { items, batch_size: 1 } },
      sqs_dead_letter_queue: undefined,
    });
    await eventually("it runs", async () => (await server.job("jobs", id)).batch_metrics.succeeded > 5);
    const early = await series(`job=${id}`);
    expect(early.total.batches).toBeGreaterThan(5);
    await kill("controller");
    const { batch_metrics } = await server.ended("jobs", id);
    expect(batch_metrics.succeeded).toBe(36);
    for (const query of [
      `job=${id}`,
      `api=jobs&job=${id}`,
      "api=jobs",
      "metric=batches&metric=failed_batches",
    ]) {
      const { total } = await series(query);
      expect([total.batches, total.failed_batches], query).toEqual([
        batch_metrics.succeeded,
        batch_metrics.failed,
      ]);
    }
    expect((await series(`job=${id}`)).metrics.map(({ metric }) => metric)).toEqual([
      "batches",
      "failed_batches",
    ]);
  });

  it("show replicas, requests in flight and reserved CPUs, at their highest", async () => {
    const path = join(server.dir, "may-end");
    const held = server.post("/echo", { do: "await", path });
    const highest = async (query: string, metric: string) =>
      Math.max(...(await values(query, metric)).map(Number));
    await eventually("it is in flight", async () => (await highest("api=echo", "in_flight")) === 1);
    expect(await highest("api=echo", "replicas")).toBe(1);
    expect(await highest("metric=cpus_reserved", "cpus_reserved")).toBeGreaterThan(0);
    writeFileSync(path, "");
    await held;
    await counted(25, 5);
  });

  it("are kept by the minute for a day, then by the hour for two weeks", async () => {
    step(MINUTE_MS);
    await send(5, 0, 0);
    await counted(30, 5);
    step(26 * HOUR_MS);
    await send(1, 0, 0);
    const rows = async (stepS: number) => {
      const database = server.openDatabase();
      const found = await database.all<{ n: number }>(
        "SELECT count(*) AS n FROM series_requests WHERE api_name = 'echo' AND step_s = ?",
        [stepS],
      );
      await database.close();
      return found[0]!.n;
    };
    await eventually("the minutes are an hour, or two", async () => (await rows(60)) === 1);
    expect(await rows(3_600)).toBeGreaterThanOrEqual(1);
    await counted(31, 5);
    const { step_s, metrics } = await series("api=echo&metric=replicas", "24h");
    expect(step_s).toBe(300);
    expect(metrics[0]!.values.at(-1)).toBe(1);
    step(15 * 24 * HOUR_MS);
    await eventually("old hours are gone", async () => (await rows(3_600)) === 0);
  });

  it("are a table with plots, and JSON, on the command line", async () => {
    await send(3, 1, 0);
    const query = "api=echo&metric=requests";
    await eventually("they are counted", async () => (await series(query)).total.requests! >= 4);
    const { code, out } = server.cli(["series", "echo", "--since", "336h"]);
    expect(code).toBe(0);
    expect(out).toMatch(
      /^since \d\d \w{3} \d\d [\d:]+ UTC, in steps of 1h0m\n\nmetric +unit +last +lowest +highest +total +plot\n/,
    );
    expect(out).toMatch(/\nrequests +1\/s .*[▁▂▃▄▅▆▇█]/);
    expect(out).toMatch(/\nlatency_p99 +s /);
    expect(out).not.toContain("failed_batches");
    const json = server.cli(["series", "echo", "--metric", "requests,replicas", "-o", "json"]);
    expect((JSON.parse(json.out) as Series).metrics.map(({ metric }) => metric)).toEqual([
      "requests",
      "replicas",
    ]);
    expect(server.cli(["series", "nothing"])).toMatchObject({ code: 4 });
    expect(server.cli(["series", "--since", "soon"])).toMatchObject({ code: 2 });
  });

  it.each([
    ["metric=speed", 400, "metric must be one of requests, errors, rejected, latency_p50"],
    ["metric=requests&job=JOB", 400, "metric of a job must be one of batches, failed_batches"],
    ["api=echo&metric=cpus_reserved", 400, "metric of an API must be one of requests, errors"],
    ["step=7", 400, "step must be one of 60, 120"],
    ["api=nothing", 404, '"nothing" is not deployed'],
    ["job=nothing", 404, 'there is no job "nothing"'],
  ])("refuse %s with %i", async (query, status, message) => {
    const response = await ask(`/-/series?${query}`);
    expect(response.status).toBe(status);
    expect(((await response.json()) as { message: string }).message).toContain(message);
  });

  it("keep what was before a rollback to the first version", async () => {
    await send(1, 0, 0);
    step(10 * MINUTE_MS);
    server.deploy(project(`${OBEDIENT}\n# another version\n`));
    step(5 * MINUTE_MS);
    expect(server.cli(["rollback", "echo"])).toMatchObject({ code: 0 });
    const known = (await values("api=echo", "requests")).filter((value) => value !== null);
    expect(known.length).toBeGreaterThanOrEqual(15);
  });

  it("go with their API", async () => {
    expect((await ask("/-/apis/echo", "DELETE")).ok).toBe(true);
    expect((await ask("/-/series?api=echo")).status).toBe(404);
    const database = server.openDatabase();
    for (const table of ["series_requests", "series_levels"])
      expect(await database.all(`SELECT * FROM ${table} WHERE api_name = 'echo'`), table).toEqual([]);
    await database.close();
  });
});
