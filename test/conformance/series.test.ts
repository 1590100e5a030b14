/** The series in the database, on SQLite and on PostgreSQL. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addReport } from "../../src/apis/records/api-metrics.ts";
import { deleteApi } from "../../src/apis/records/api-rows.ts";
import { newUlid } from "../../src/base/ids.ts";
import { forgetJob, forgottenBefore } from "../../src/batch/end/forget-job.ts";
import { endCounted } from "../../src/batch/end/job-durations.ts";
import { NewRounds } from "../../src/batch/end/new-round.ts";
import { begunJobs } from "../../src/batch/listing/begun-jobs.ts";
import { setClosing } from "../../src/batch/records/job-moves.ts";
import { insertJob } from "../../src/batch/records/job-rows.ts";
import { addSettled, claimJob, setRunning } from "../../src/batch/records/owned-job.ts";
import { NOBODY } from "../../src/contracts/keys.ts";
import { emptyTally, type Report } from "../../src/contracts/reports.ts";
import type { Database } from "../../src/database/database.ts";
import { migrate } from "../../src/database/migrations.ts";
import { connectPostgres } from "../../src/database/postgres/open-postgres.ts";
import { SERIES_STEP } from "../../src/database/schema/series-step.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { countBatches } from "../../src/series/batch-rows.ts";
import { changesIn, keptChanges, noteReplicaEnd, noteVersion } from "../../src/series/change-rows.ts";
import { newestLevels, saveLevels } from "../../src/series/level-rows.ts";
import { rowOf, UNKNOWN } from "../../src/series/levels.ts";
import { pastSteps } from "../../src/series/past-steps.ts";
import { readSeries } from "../../src/series/read-series.ts";
import { pruneSeries } from "../../src/series/retention.ts";
import { isPostgresInstalled, startPostgres } from "../harness/postgres.ts";

const HOUR_S = 3_600;
const DAY_S = 24 * HOUR_S;
const NOON_S = Date.UTC(2026, 10, 10, 12) / 1000;
const minute = (at: number) => NOON_S + 60 * at;

async function openSqlite() {
  const directory = mkdtempSync(join(tmpdir(), "quern-series-"));
  const db = openSqliteDatabase(join(directory, "quern.db"));
  return { db, remove: () => rmSync(directory, { recursive: true }) };
}

async function openPostgres() {
  const postgres = await startPostgres();
  return { db: await connectPostgres({ url: postgres.url }), remove: () => postgres.stop() };
}

describe.each([
  ["SQLite", openSqlite, true],
  ["PostgreSQL", openPostgres, isPostgresInstalled],
] as const)("the series on %s", (_, open, isHere) => {
  let db: Database;
  let remove = () => {};
  beforeAll(async () => {
    if (!isHere) return;
    ({ db, remove } = await open());
    await migrate(db);
    await saveLevels(db, [["", rowOf(minute(-10 * 24 * 60), UNKNOWN)]]);
  });
  afterAll(async () => {
    await db?.close();
    remove();
  });

  const deploy = async (name: string) => {
    const time = new Date((NOON_S - 10 * DAY_S) * 1000).toISOString();
    await db.run("INSERT INTO apis (name, kind, api_id, deployed_time) VALUES (?, 'RealtimeAPI', 'v', ?)", [
      name,
      time,
    ]);
    await db.run(
      "INSERT INTO api_versions (name, api_id, predictor_id, spec_json, project_id, deployed_time) VALUES (?, 'v', 'p', '{}', 'p', ?)",
      [name, time],
    );
  };
  /** A gateway's totals of one API: so many responses 200 and 500 that took 20 ms. */
  const report = (gateway: string, name: string, counts: { "2xx": number; "5xx": number }, timeS: number) => {
    const tally = { ...emptyTally(), answers: counts };
    tally.duration.buckets[4] = counts["2xx"] + counts["5xx"];
    const apis = [{ name, tally, in_flight: 0, waiting: 0 }];
    const text = JSON.stringify(apis.map((api) => [api.name, api.tally]));
    return addReport(db, { gateway, apis } satisfies Report, text, new Date(timeS * 1000));
  };
  const recorder = { currentMinute: minute(0), unsaved: () => [] };
  const read = async (
    query: { api?: string; job?: string; metrics: string[]; from: number; to?: number; step?: number },
    nowS: number,
  ) => {
    const [from, to, step] = [query.from, query.to ?? nowS, query.step].map((value) => value?.toString());
    const series = await readSeries({ db, recorder }, { ...query, from, to, step }, nowS);
    const totals = series.metrics.map(({ metric, total }) => [metric, total]);
    return { ...series, totals: Object.fromEntries(totals) as Record<string, number | null> };
  };
  const newJob = async (job_id: string, api_name = "jobs") => {
    await insertJob(db, {
      ...{
        job_id,
        api_name,
        api_id: "v",
        submission_json: "{}",
        config_json: "{}",
        workers: 1,
        timeout_s: null,
      },
      ...{ max_receive_count: 1, dead_letter_arn: null, dead_letter_queue: null, has_older_names: 0 },
      created_time: new Date((NOON_S - DAY_S) * 1000).toISOString(),
    });
    await claimJob(db, job_id, 1);
    await setRunning(db, job_id, 1, 10);
  };
  const settle = (job: string, succeeded: number, failedAttempts: number, failedBatches = 0) =>
    addSettled(db, job, 1, { succeeded, failedAttempts, failedBatches, successUs: 1 });
  const endJob = async (job: string) => {
    await setClosing(db, job, { status: "status_completed_with_failures" });
    await endCounted(db, job, new Date().toISOString());
  };

  it.runIf(isHere)("adds up what gateways report, and repeats nothing", async () => {
    await deploy("live");
    await report("g1", "live", { "2xx": 6, "5xx": 0 }, minute(-2));
    await report("g2", "live", { "2xx": 0, "5xx": 6 }, minute(-2));
    for (const times of [1, 2]) await report("g1", "live", { "2xx": 12, "5xx": 0 }, minute(-1) + times);
    await report("g1", "gone", { "2xx": 100, "5xx": 0 }, minute(-1));
    for (const api of ["live", undefined]) {
      const { metrics, totals } = await read(
        { ...(api && { api }), metrics: ["requests", "errors", "latency_p50"], from: minute(-3) },
        minute(0),
      );
      expect(metrics.map(({ values }) => values.slice(0, 3))).toEqual([
        [0, 0.2, 0.1],
        [0, 0.1, 0],
        [null, 0.0175, 0.0175],
      ]);
      expect(totals).toEqual({ requests: 18, errors: 6, latency_p50: null });
    }
  });

  it.runIf(isHere)(
    "counts each batch once, whenever a job ends, begins a new round or is counted",
    async () => {
      await deploy("jobs");
      await newJob("j1");
      await settle("j1", 2, 1);
      await countBatches(db, minute(-3));
      for (let times = 0; times < 2; times++) await countBatches(db, minute(-2));
      await settle("j1", 3, 0, 0);
      const asked = { metrics: ["batches", "failed_batches"], from: minute(-30) };
      // What no row has yet is read from the job.
      for (const whose of [{ job: "j1" }, { api: "jobs" }, {}])
        expect((await read({ ...asked, ...whose }, minute(0) + 1)).totals).toEqual({
          batches: 5,
          failed_batches: 1,
        });
      await settle("j1", 0, 5, 5);
      await endJob("j1");
      await countBatches(db, minute(-1));
      const rows = () =>
        db.all(
          "SELECT api_name, job_id, SUM(succeeded) AS succeeded, SUM(failed) AS failed FROM series_batches GROUP BY api_name, job_id ORDER BY api_name, job_id",
        );
      const all = (succeeded: number, failed: number) => [
        { api_name: "", job_id: "", succeeded, failed },
        { api_name: "jobs", job_id: "", succeeded, failed },
        { api_name: "jobs", job_id: "j1", succeeded, failed },
      ];
      expect(await rows()).toEqual(all(5, 6));
      await db.run("UPDATE jobs SET total_batch_count = 12 WHERE job_id = 'j1'");
      await new NewRounds(db, async () => null).resume("j1", NOBODY);
      await countBatches(db, minute(-1));
      expect(await rows()).toEqual(all(5, 6));
      await settle("j1", 2, 0);
      await endJob("j1");
      expect(await rows()).toEqual(all(7, 6));
      expect(await db.all("SELECT * FROM series_counted")).toEqual([]);
    },
  );

  it.runIf(isHere)("begins with what jobs count after the update to this release", async () => {
    await newJob("j0", "former");
    await settle("j0", 7, 2);
    // As of an older release, in which nothing counted it.
    await db.run("DELETE FROM series_counted");
    await db.run((SERIES_STEP as readonly string[]).at(-1)!);
    await settle("j0", 1, 0);
    const { totals } = await read({ job: "j0", metrics: [], from: minute(-30) }, minute(0) + 1);
    expect(totals).toEqual({ batches: 1, failed_batches: 0 });
    await endJob("j0");
  });

  it.runIf(isHere)("turns minutes into hours after a day, and keeps hours for two weeks", async () => {
    await deploy("old");
    for (const at of [0, 1, 59, 60])
      await report("g3", "old", { "2xx": 10 * (at + 1), "5xx": at }, minute(at));
    const level = (in_flight: number) => ({ ...UNKNOWN, in_flight, replicas: in_flight });
    for (const [at, in_flight] of [
      [0, 7],
      [1, 3],
      [60, 4],
    ] as const)
      await saveLevels(db, [["old", rowOf(minute(at), level(in_flight))]]);
    const hours = async (nowS: number) => {
      const asked = { api: "old", metrics: ["requests", "errors", "in_flight", "replicas"] };
      const answer = await read({ ...asked, from: NOON_S, to: NOON_S + 2 * HOUR_S, step: HOUR_S }, nowS);
      return [answer.totals, ...answer.metrics.slice(2).map(({ values }) => values)];
    };
    const all = [{ requests: 670, errors: 60, in_flight: null, replicas: null }, [7, 4], [3, 4]];
    const nowS = NOON_S + DAY_S + 2 * HOUR_S;
    expect(await hours(nowS)).toEqual(all);
    await pruneSeries(db, nowS, () => false);
    const rows = await db.all<{ step_s: number; at_s: number }>(
      "SELECT step_s, at_s FROM series_requests WHERE api_name = 'old' ORDER BY at_s",
    );
    expect(rows).toEqual([NOON_S, NOON_S + HOUR_S].map((at_s) => ({ step_s: HOUR_S, at_s })));
    expect(await hours(nowS)).toEqual(all);
    // The clock was set back, and a minute comes after its hour.
    await report("g3", "old", { "2xx": 615, "5xx": 60 }, minute(5));
    await pruneSeries(db, nowS, () => false);
    expect((await hours(nowS))[0]).toMatchObject({ requests: 615 + 60 });
    const lateS = NOON_S + 20 * DAY_S;
    await pruneSeries(db, lateS, () => false);
    expect(await db.all("SELECT * FROM series_requests")).toEqual([]);
    // The level holds still.
    expect((await newestLevels(db)).get("old")).toMatchObject({ at_s: NOON_S + HOUR_S, in_flight: 4 });
    const { metrics } = await read({ api: "old", metrics: ["replicas"], from: lateS - HOUR_S }, lateS);
    expect(new Set(metrics[0]!.values)).toEqual(new Set([4]));
  });

  it.runIf(isHere)("count refused requests by code, by the hour after a day", async () => {
    await deploy("closed");
    const refused = (counts: Record<string, number>, timeS: number) => {
      const tally = { ...emptyTally(), answers: { "4xx": 1 }, rejected: counts };
      const apis = [{ name: "closed", tally, in_flight: 0, waiting: 0 }];
      const text = JSON.stringify(apis.map((api) => [api.name, api.tally]));
      return addReport(db, { gateway: "g9", apis }, text, new Date(timeS * 1000));
    };
    await refused({ rate_limited: 2 }, minute(200));
    for (const times of [1, 2]) await refused({ rate_limited: 5, queue_full: 1 }, minute(201) + times);
    const window = { startS: minute(180), endS: minute(240), stepS: 60 };
    const steps = await pastSteps({ db, recorder }, "closed", window, minute(230));
    expect(steps).toHaveLength(51);
    expect(steps[20]).toMatchObject({ startS: minute(200), requests: 1, rejected: { rate_limited: 2 } });
    expect(steps[21]).toMatchObject({ rejected: { rate_limited: 3, queue_full: 1 }, requests: 0 });
    const asked = { metrics: ["rejected"], from: minute(180) };
    for (const whose of [{ api: "closed" }, {}])
      expect((await read({ ...asked, ...whose }, minute(230))).totals).toEqual({ rejected: 6 });
    const laterS = minute(240) + DAY_S + HOUR_S;
    await pruneSeries(db, laterS, () => false);
    const hours = { startS: minute(180), endS: minute(240), stepS: HOUR_S };
    expect(await pastSteps({ db, recorder }, "closed", hours, laterS)).toMatchObject([
      { startS: minute(180), requests: 1, rejected: { rate_limited: 5, queue_full: 1 } },
    ]);
  });

  it.runIf(isHere)(
    "keep what changed for two weeks: versions, and the ends of replicas by the minute",
    async () => {
      await deploy("moved");
      const by = { id: "k-1", name: "ci" };
      const version = (id: string, former: string | undefined, at: number) =>
        db.transaction((tx) => noteVersion(tx, { api: "moved", id, former, by }, "deployed", minute(at) + 7));
      await version("v1", undefined, 0);
      await version("v1", "v1", 1);
      await version("v2", "v1", 2);
      for (const how of ["exited with code 1", "ran out of memory"])
        await noteReplicaEnd(db, "moved", how, minute(3) + 20);
      await noteReplicaEnd(db, "nobody", "exited with code 1", minute(3));
      const span = { fromS: minute(0), toS: minute(60) };
      const who = { by_id: "k-1", by_name: "ci" };
      const nobody = { by_id: null, by_name: null };
      expect(await changesIn(db, "moved", span)).toEqual([
        { at_s: minute(0) + 7, kind: "deployed", times: 1, detail: "v1", former: null, ...who },
        { at_s: minute(2) + 7, kind: "deployed", times: 1, detail: "v2", former: "v1", ...who },
        {
          at_s: minute(3),
          kind: "replica_ended",
          times: 2,
          detail: "ran out of memory",
          former: null,
          ...nobody,
        },
      ]);
      expect((await keptChanges(db, "moved")).map(({ detail }) => detail)).toEqual([
        "ran out of memory",
        "v2",
        "v1",
      ]);
      expect(await changesIn(db, "moved", { fromS: minute(2), toS: minute(3) })).toHaveLength(1);
      expect(await changesIn(db, "nobody", span)).toEqual([]);
      await pruneSeries(db, minute(2) + 14 * DAY_S, () => false);
      expect(await changesIn(db, "moved", span)).toHaveLength(2);
      await deleteApi(db, "moved");
      expect(await changesIn(db, "moved", span)).toEqual([]);
    },
  );

  it.runIf(isHere)("finds the jobs that began in a while", async () => {
    const nowMs = (NOON_S + 3 * HOUR_S) * 1000;
    const begins = async (name: string, madeMs: number, startMs: number) => {
      const id = newUlid(madeMs);
      await newJob(id, name);
      await db.run("UPDATE jobs SET start_time = ? WHERE job_id = ?", [new Date(startMs).toISOString(), id]);
      return id;
    };
    const waited = await begins("far", nowMs - HOUR_S * 1000, nowMs + 2);
    const soon = await begins("near", nowMs - 1, nowMs + 1);
    await begins("near", nowMs - 1, nowMs - 1);
    await begins("near", nowMs, nowMs + 60_000);
    expect(await begunJobs(db, nowMs, nowMs + 60_000)).toMatchObject([
      { job_id: soon, api_name: "near", workers: 1, end_time: null },
      { job_id: waited, api_name: "far" },
    ]);
  });

  it.runIf(isHere)("finds each round of a job for itself: it does not run between them", async () => {
    const fromMs = (NOON_S + 4 * HOUR_S) * 1000;
    const time = (seconds: number) => new Date(fromMs + seconds * 1000).toISOString();
    const id = newUlid(fromMs);
    await newJob(id, "again");
    const columns = "job_id, round, how, begun_time, ended_time";
    const row = (round: number, begun: number, ended: number | null) =>
      db.run(`INSERT INTO job_rounds (${columns}) VALUES (?, ?, 'redriven', ?, ?)`, [
        ...[id, round, time(begun), ended === null ? null : time(ended)],
      ]);
    await row(1, 0, 12);
    await row(2, 300, 301);
    await row(3, 600, null);
    await db.run("UPDATE jobs SET start_time = ?, end_time = ?, round = 3 WHERE job_id = ?", [
      ...[time(1), time(609), id],
    ]);
    const begun = async (from: number, to: number) =>
      (await begunJobs(db, fromMs + from * 1000, fromMs + to * 1000))
        .filter(({ job_id }) => job_id === id)
        .map(({ round, start_time, end_time }) => [round, start_time, end_time]);
    expect(await begun(0, 3_600)).toEqual([
      [1, time(1), time(12)],
      [2, time(300), time(301)],
      [3, time(600), time(609)],
    ]);
    expect(await begun(100, 400)).toEqual([[2, time(300), time(301)]]);
    expect(await begun(20, 100)).toEqual([]);
  });

  it.runIf(isHere)("go with their API, and leave the sum of all", async () => {
    await deploy("short");
    await report("g4", "short", { "2xx": 3, "5xx": 0 }, minute(-1));
    await saveLevels(db, [["short", rowOf(minute(-1), { ...UNKNOWN, replicas: 1 })]]);
    await newJob("j2", "short");
    await settle("j2", 4, 0);
    await endJob("j2");
    await deleteApi(db, "short");
    await saveLevels(db, [["short", rowOf(minute(0), { ...UNKNOWN, replicas: 1 })]]);
    await report("g4", "short", { "2xx": 9, "5xx": 0 }, minute(0));
    for (const table of ["series_requests", "series_levels"])
      expect(await db.all(`SELECT * FROM ${table} WHERE api_name = 'short'`), table).toEqual([]);
    expect(await db.all("SELECT job_id FROM series_batches WHERE api_name = 'short'")).toEqual([
      { job_id: "j2" },
    ]);
    await db.run("UPDATE jobs SET pruned_time = end_time WHERE job_id = 'j2'");
    await forgetJob(db, "j2", forgottenBefore(Date.now() + 30 * DAY_S * 1000, undefined));
    expect(await db.all("SELECT * FROM series_batches WHERE api_name = 'short'")).toEqual([]);
    await expect(read({ api: "short", metrics: [], from: NOON_S }, minute(5))).rejects.toMatchObject({
      code: "api_not_found",
    });
    const { totals } = await read({ metrics: ["requests"], from: minute(-2), to: minute(0) }, minute(0));
    expect(totals.requests).toBe(3);
  });
});
