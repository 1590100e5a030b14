/** The database port, on SQLite and on PostgreSQL: the guarantees that the code above it needs. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addReport, readMetrics, storedTotals } from "../../src/apis/records/api-metrics.ts";
import { endCounted, jobDurations } from "../../src/batch/end/job-durations.ts";
import {
  failedItems,
  failSplitBatch,
  openBatches,
  partsOf,
  replaceParts,
  saveFailedItems,
  saveParts,
} from "../../src/batch/isolate/isolated-rows.ts";
import { countPartial, filesOfParts } from "../../src/batch/isolate/parts-of-job.ts";
import { reopen, reopenedBatches } from "../../src/batch/isolate/reopen-batches.ts";
import { deleteLetters, lettersOf, makeLetter, saveLetter } from "../../src/batch/letters/letters.ts";
import { letterTotals, queueCounts, queueExists, queueNames } from "../../src/batch/letters/queue-counts.ts";
import { jobsByIds } from "../../src/batch/listing/find-jobs.ts";
import { partTotals, savePart } from "../../src/batch/output/part-rows.ts";
import {
  chargedAttempts,
  forgetBatches,
  saveFailedAttempt,
  setLetterError,
} from "../../src/batch/records/batch-rows.ts";
import {
  countDeadly,
  errorsOfGroup,
  failedBatches,
  failureGroups,
  firstDeadly,
} from "../../src/batch/records/failed-batches.ts";
import {
  addInterruptions,
  condemned,
  saveInHand,
  suspects,
} from "../../src/batch/records/interrupted-batches.ts";
import { listJobs } from "../../src/batch/records/job-lists.ts";
import { setClosing } from "../../src/batch/records/job-moves.ts";
import { insertJob, jobById } from "../../src/batch/records/job-rows.ts";
import { jobSummary } from "../../src/batch/records/job-totals.ts";
import { addSettled, claimJob, saveEnqueued, setRunning } from "../../src/batch/records/owned-job.ts";
import { findSubmission, saveSubmission, submissionKey } from "../../src/batch/submit/idempotency.ts";
import { emptyTally, type Report, type Tally } from "../../src/contracts/reports.ts";
import type { Database, SqlValue, Statements } from "../../src/database/database.ts";
import {
  addKey,
  addSession,
  allKeys,
  allSessions,
  removeSessions,
  replaceKey,
  revokeKey,
  saveKeyUse,
} from "../../src/database/key-rows.ts";
import { migrate } from "../../src/database/migrations.ts";
import { takeEpoch } from "../../src/database/owner-row.ts";
import { connectPostgres } from "../../src/database/postgres/open-postgres.ts";
import {
  afterUnsettled,
  appendSegments,
  findSegment,
  findWholeSegment,
  isSettled,
  markSettled,
  segmentsWithSettled,
  unsettledSegments,
  writeSettled,
} from "../../src/database/segment-rows.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { isPostgresInstalled, startPostgres } from "../harness/postgres.ts";

interface Opened {
  db: Database;
  close: () => Promise<void>;
}

async function openSqlite(): Promise<Opened> {
  const directory = mkdtempSync(join(tmpdir(), "quern-database-"));
  const db = openSqliteDatabase(join(directory, "quern.db"));
  return {
    db,
    close: async () => {
      await db.close();
      rmSync(directory, { recursive: true });
    },
  };
}

async function openPostgres(): Promise<Opened> {
  const postgres = await startPostgres();
  const db = await connectPostgres({ url: postgres.url });
  return {
    db,
    close: async () => {
      await db.close();
      postgres.stop();
    },
  };
}

describe.each([
  ["SQLite", openSqlite, true],
  ["PostgreSQL", openPostgres, isPostgresInstalled],
] as const)("the database port on %s", (engine, open, isHere) => {
  let opened: Opened;
  let db: Database;
  beforeAll(async () => {
    if (!isHere) return;
    opened = await open();
    db = opened.db;
    await migrate(db);
  });
  afterAll(() => opened?.close());
  const job = (job_id: string) => ({
    job_id,
    api_name: "a",
    api_id: "1",
    submission_json: "{}",
    config_json: "{}",
    workers: 1,
    timeout_s: null,
    max_receive_count: 1,
    dead_letter_arn: null,
    dead_letter_queue: null,
    created_time: "2026-01-01T00:00:00.000000000Z",
    has_older_names: 0,
  });

  it.runIf(isHere)("migrates once; a second migration changes nothing; epochs rise", async () => {
    await migrate(db);
    const before = await takeEpoch(db);
    expect(await takeEpoch(db)).toBe(before + 1);
  });

  it.runIf(isHere)("rejects a schema of a newer release", async () => {
    await db.transaction(async (tx) => {
      await tx.run("UPDATE schema_version SET version = version + 1000");
    });
    await expect(migrate(db)).rejects.toThrow("start it with the newer Quern");
    await db.run("UPDATE schema_version SET version = version - 1000");
  });

  it.runIf(isHere)(
    "rolls back failed transactions, and runs nothing between the statements of a transaction",
    async () => {
      const failing = db.transaction(async (tx) => {
        await insertJob(tx, job("rolled-back"));
        throw new Error("on purpose");
      });
      await expect(failing).rejects.toThrow("on purpose");
      expect(await jobById(db, "rolled-back")).toBeUndefined();
      const order: string[] = [];
      const first = db.transaction(async (tx) => {
        order.push("first begins");
        await tx.all("SELECT 1 AS one");
        await new Promise((resolve) => setImmediate(resolve));
        order.push("first ends");
      });
      const second = db.all("SELECT 1 AS one").then(() => order.push("second"));
      await Promise.all([first, second]);
      expect(order).toEqual(["first begins", "first ends", "second"]);
    },
  );

  it.runIf(isHere)(
    "keeps texts, bytes, nulls and integers unchanged, and reports an integer that is too large",
    async () => {
      await db.run("CREATE TABLE things (name TEXT, content BLOB, number INTEGER)");
      const content = Uint8Array.from([0, 1, 255]);
      await db.run("INSERT INTO things VALUES (?, ?, ?)", ["ö\n'?", content, Number.MAX_SAFE_INTEGER]);
      const [row] = await db.all<{ name: string; content: Uint8Array; number: number }>(
        "SELECT * FROM things",
      );
      expect({ ...row!, content: Uint8Array.from(row!.content) }).toEqual({
        name: "ö\n'?",
        content,
        number: Number.MAX_SAFE_INTEGER,
      });
      const nul = await db.all("SELECT name FROM things WHERE name = ?", ["a\0b"]);
      expect(nul).toEqual([]);
      await db.run("UPDATE things SET number = number + 10");
      await expect(db.all("SELECT number FROM things")).rejects.toThrow();
      const [real] = await db.all(
        "SELECT CAST(1.7e18 AS DOUBLE PRECISION) AS large, CAST(1e300 AS DOUBLE PRECISION) AS larger FROM things",
      );
      expect(real).toMatchObject({ large: 1.7e18, larger: 1e300 });
      await db.run("DELETE FROM things");
      for (const name of ["b", "B", "a", "~", "ä"])
        await db.run("INSERT INTO things (name) VALUES (?)", [name]);
      const names = await db.all<{ name: string }>("SELECT name FROM things ORDER BY name");
      expect(names.map((found) => found.name)).toEqual(["B", "a", "b", "~", "ä"]);
    },
  );

  it.runIf(isHere)("changes the status of a job only for its owner, and only one end wins", async () => {
    await insertJob(db, job("job-1"));
    await insertJob(db, job("job-2"));
    expect(await claimJob(db, "job-1", 5)).toMatchObject({ epoch: 5, status: "status_enqueuing" });
    expect(await claimJob(db, "job-1", 4)).toBeUndefined();
    expect(await saveEnqueued(db, "job-1", 4, 10, null)).toBe(false);
    expect(await saveEnqueued(db, "job-1", 5, 10, { entry: 0 })).toBe(true);
    expect(await setRunning(db, "job-1", 5, 10)).toBe(true);
    const delta = { succeeded: 9, failedAttempts: 1, failedBatches: 1, successUs: 1000 };
    expect(await addSettled(db, "job-1", 4, delta)).toBe(false);
    expect(await addSettled(db, "job-1", 5, delta)).toBe(true);
    const endings = await Promise.all([
      setClosing(db, "job-1", { status: "status_stopped", reason: { code: "stopped", message: "m" } }),
      setClosing(db, "job-1", { status: "status_succeeded" }),
    ]);
    expect(endings).toEqual([true, false]);
    expect(await claimJob(db, "job-1", 5)).toBeUndefined();
    expect(await endCounted(db, "job-1", "2026-01-01T00:00:01.000000000Z")).toMatchObject({
      job_id: "job-1",
    });
    expect(await endCounted(db, "job-1", "2026-01-01T00:00:02.000000000Z")).toBeUndefined();
    expect(await claimJob(db, "job-1", 5)).toBeUndefined();
    const [duration, ...more] = await jobDurations(db);
    expect([more, duration]).toEqual([
      [],
      expect.objectContaining({ status: "status_stopped", sumSeconds: 1 }),
    ]);
    expect(await jobById(db, "job-1")).toMatchObject({
      status: "status_stopped",
      succeeded: 9,
      total_batch_count: 10,
    });
    expect(await jobSummary(db, "a")).toMatchObject({ running_jobs: 1, latest_job: { job_id: "job-2" } });
    const list = (status?: "status_stopped", before?: string) =>
      listJobs(db, "a", { limit: 10, before, status });
    expect((await list()).map(({ job_id }) => job_id)).toEqual(["job-2", "job-1"]);
    expect((await list(undefined, "job-2")).map(({ job_id }) => job_id)).toEqual(["job-1"]);
    expect((await list("status_stopped")).map(({ job_id }) => job_id)).toEqual(["job-1"]);
  });

  it.runIf(isHere)("keeps segments with their bitmaps", async () => {
    for (const first_batch of [0, 10]) {
      const ranges = [{ path: "file:///a", etag: "e", start: first_batch, end: first_batch + 10 }];
      await appendSegments(db, "job-1", [
        {
          first_batch,
          batch_count: 10,
          item_count: 10,
          ranges,
          has_blank_lines: false,
        },
      ]);
    }
    const [segment] = await unsettledSegments(db, "job-1", 0, 1);
    for (let batch = 0; batch < 9; batch++) expect(markSettled(segment!, batch)).toBe(true);
    expect(markSettled(segment!, 8)).toBe(false);
    await db.transaction((tx) => writeSettled(tx, "job-1", segment!));
    const again = await findSegment(db, "job-1", 9);
    expect([again!.first_batch, isSettled(again!, 8), isSettled(again!, 9)]).toEqual([0, true, false]);
    markSettled(again!, 9);
    await writeSettled(db, "job-1", again!);
    expect((await unsettledSegments(db, "job-1", 0, 10)).map(({ first_batch }) => first_batch)).toEqual([10]);
    expect([await afterUnsettled(db, "job-1", 3), await afterUnsettled(db, "job-1", 0)]).toEqual([20, 0]);
    expect((await findWholeSegment(db, "job-1", 12))!.ranges[0]).toMatchObject({ start: 10, end: 20 });
  });

  it.runIf(isHere)("does not read the ranges of a segment for its progress", async () => {
    const progress = { first_batch: 0, batch_count: 10, settled_count: 10, settled: Uint8Array.of(255, 3) };
    expect(await findSegment(db, "job-1", 9)).toEqual(progress);
    expect(await segmentsWithSettled(db, "job-1", 0, 10)).toEqual([progress]);
    const whole = { item_count: 10, has_blank_lines: false, ranges: [expect.anything()] };
    expect(await findWholeSegment(db, "job-1", 9)).toMatchObject({ ...progress, ...whole });
  });

  it.runIf(isHere)("appends many segments at once", async () => {
    const counts = { batch_count: 1, item_count: 1, ranges: [], has_blank_lines: true };
    const many = Array.from({ length: 120 }, (_, first_batch) => ({ first_batch, ...counts }));
    await db.transaction((tx) => appendSegments(tx, "many", many));
    const read = await unsettledSegments(db, "many", 0, 1_000);
    expect(read.map(({ first_batch }) => first_batch)).toEqual(many.map(({ first_batch }) => first_batch));
    expect(read[119]).toMatchObject({ has_blank_lines: true, settled_count: 0 });
  });

  it.runIf(isHere)("replaces the parts of an output, for the job's owner only", async () => {
    const part = {
      number: 0,
      first_batch: 0,
      next_batch: 3,
      batches: 2,
      name: "p",
      rows: 7,
      bytes: 9,
      sha256: "s",
      unpacked_bytes: 2 ** 40,
    };
    const epoch = (await jobById(db, "job-1"))!.epoch;
    for (const rows of [7, 8]) expect(await savePart(db, "job-1", epoch, { ...part, rows })).toBe(true);
    expect(await savePart(db, "job-1", epoch + 1, part)).toBe(false);
    expect(await savePart(db, "job-1", epoch, { ...part, number: 1, first_batch: 3, next_batch: 4 })).toBe(
      true,
    );
    expect(await partTotals(db, "job-1")).toEqual({ parts: 1, rows: 7, bytes: 9, batches: 4 });
  });

  it.runIf(isHere)("adds up the numbers of gateways, also beyond the largest one", async () => {
    const most = Number.MAX_VALUE;
    const tally = (values: Tally["values"]): Tally => ({ ...emptyTally(), answers: { "2xx": 3 }, values });
    const report = (gateway: string, values: Tally["values"], hour: string) => {
      const api = { name: "sums", tally: tally(values), in_flight: 0, waiting: 0 };
      const talliesText = JSON.stringify([[api.name, api.tally]]);
      return addReport(db, { gateway, apis: [api] } as unknown as Report, talliesText, new Date(hour));
    };
    const large = { count: 1, sum: most, least: most, most };
    for (const gateway of ["one", "two"]) {
      await report(gateway, large, "2026-01-01T00:00:00Z");
      await report(`${gateway} later`, large, "2026-01-01T01:00:00Z");
    }
    expect((await storedTotals(db)).size).toBeGreaterThan(0);
    expect(await readMetrics(db, "sums")).toMatchObject({
      requests: { "2xx": 12 },
      values: { count: 4, avg: most / 4, min: most, max: most },
    });
  });

  it.runIf(isHere)("counts attempts and interruptions of batches", async () => {
    const fault = { stage: "predict" as const, type: "E", message: "m", traceback: "t" };
    const fail = (batch_index: number, cause: "fault" | "death" | "oom", isFinal: boolean, message = "m") =>
      saveFailedAttempt(db, "job-1", 1, { batch_index, cause, isFinal, fault: { ...fault, message } });
    await fail(3, "fault", false);
    expect(await chargedAttempts(db, "job-1")).toEqual(new Map([[3, 1]]));
    await fail(3, "death", true);
    await fail(4, "oom", true, "row 17");
    await fail(5, "oom", true, "row 18");
    expect(await chargedAttempts(db, "job-1")).toEqual(new Map());
    expect(await failedBatches(db, "job-1", -1, 1)).toMatchObject([{ batch_index: 3, attempts: 2 }]);
    expect(await countDeadly(db, "job-1")).toEqual({ failedByDeath: 1, failedByOom: 2 });
    expect(await failureGroups(db, "job-1", 10)).toMatchObject([
      { batches: 2, first_batch_index: 4 },
      { batches: 1, first_batch_index: 3 },
    ]);
    await forgetBatches(db, "job-1", [4, 5]);
    expect(await countDeadly(db, "job-1")).toEqual({ failedByDeath: 1, failedByOom: 0 });
    const noted = { job_id: "job-2", batch_index: 7 };
    for (let times = 0; times < 2; times++) await addInterruptions(db, [noted]);
    await saveInHand(db, "job-2", 1, 8, "recorded");
    await saveInHand(db, "job-2", 1, 9, "recorded");
    await saveInHand(db, "job-2", 1, 9, "no");
    // A recorded attempt is counted once, whatever its note says.
    await addInterruptions(db, [{ ...noted, batch_index: 8 }]);
    expect(await suspects(db, "job-2", 2)).toEqual(new Set([7]));
    expect(await suspects(db, "job-2", 1)).toEqual(new Set([7, 8]));
    await saveInHand(db, "job-2", 1, 7, "alone");
    await addInterruptions(db, [noted]);
    expect([await condemned(db, "job-2"), await suspects(db, "job-2", 3)]).toEqual([new Set([7]), new Set()]);
    await saveFailedAttempt(db, "job-2", 1, { batch_index: 7, cause: "death", isFinal: false, fault });
    expect(await condemned(db, "job-2")).toEqual(new Set());
  });

  it.runIf(isHere)("counts failures in pages, and passes over the rest of a large group", async () => {
    await db.run(
      `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 33999)
       INSERT INTO batches (job_id, batch_index, round, attempts, failed, error_json, error_group)
       SELECT 'job-paged', i, 1, 1, 1, '{}', CASE WHEN i < 3000 THEN 'A' WHEN i < 3001 THEN '' ELSE 'B' END FROM n`,
    );
    const asked: [string, readonly SqlValue[]][] = [];
    const watched: Statements = {
      run: (sql, values) => db.run(sql, values),
      all: (sql, values = []) => {
        asked.push([sql, values]);
        return db.all(sql, values);
      },
    };
    expect(await failureGroups(watched, "job-paged", 2)).toEqual([
      { error_group: "B", batches: 30_999, first_batch_index: 3001 },
      { error_group: "A", batches: 3000, first_batch_index: 0 },
    ]);
    // Three pages, three times 10,000 passed over, the rest counted, and nothing after it.
    expect(asked).toHaveLength(8);
    if (engine !== "SQLite") return;
    const plans = await Promise.all(
      [1, 3, 6].map((at) => db.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${asked[at]![0]}`, asked[at]![1])),
    );
    const ofGroup =
      "SEARCH batches USING COVERING INDEX batches_by_error (job_id=? AND error_group=? AND batch_index>?)";
    expect(plans.map(([row]) => row!.detail)).toEqual([
      "SEARCH batches USING COVERING INDEX batches_by_error (job_id=? AND (error_group,batch_index)>(?,?))",
      ofGroup,
      ofGroup,
    ]);
  });

  it.runIf(isHere)("finds no job for no id", async () => {
    expect(await jobsByIds(db, [])).toEqual([]);
  });

  it.runIf(isHere)(
    "finds a few errors of a group: of its first batch, of one in the middle, and of its last",
    async () => {
      await db.run(
        `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999)
       INSERT INTO batches (job_id, batch_index, round, attempts, failed, error_json, error_group)
       SELECT 'job-few', i, 1, 1, 1, '{}', CASE WHEN i < 3 THEN 'A' WHEN i < 4 THEN 'B' ELSE 'C' END FROM n`,
      );
      const found = async (group: string, first: number) =>
        (await errorsOfGroup(db, "job-few", group, first)).map(({ batch_index }) => batch_index);
      expect(await found("C", 4)).toEqual([4, 502, 999]);
      expect(await found("A", 0)).toEqual([0, 2]);
      expect(await found("B", 3)).toEqual([3]);
      expect(await found("A", 3)).toEqual([]);
    },
  );

  it.runIf(isHere)("keeps dead letters in their queues, oldest first, each with its bytes", async () => {
    const letter = (name: string, batch_index: number) =>
      makeLetter({
        queue: name,
        api_name: "a",
        job_id: "job-1",
        batch_index,
        round: 1,
        body: Buffer.from(`[${batch_index}, "\u00fc"]`),
        receiveCount: 2,
        error: { type: "E", message: "m", traceback: "t" },
      });
    for (const i of [1, 2]) await saveLetter(db, { ...letter("q", i), message_id: `m${i}` });
    await saveLetter(db, letter("other", 3));
    const [first, second] = await lettersOf(db, "q", "", 10);
    expect([first!.batch_index, second!.batch_index]).toEqual([1, 2]);
    expect(Buffer.from(first!.body).toString()).toBe('[1, "\u00fc"]');
    expect(await queueCounts(db, "q")).toMatchObject({ name: "q", messages: 2 });
    expect([await queueExists(db, "q"), await queueExists(db, "nothing")]).toEqual([true, false]);
    expect(await queueNames(db, "", 10)).toEqual(["other", "q"]);
    expect(await letterTotals(db)).toEqual([
      { queue: "other", messages: 1 },
      { queue: "q", messages: 2 },
    ]);
    expect(await deleteLetters(db, ["m1", "m2"])).toBe(2);
    expect(await lettersOf(db, "q", "", 10)).toEqual([]);
  });

  it.runIf(isHere)("keeps the parts of batches that are split, and their guilty items", async () => {
    const place = { file: 3, offset: 100, bytes: 40, rows: 4 };
    const good = { first: 0, next: 4, state: "good", attempts: 1, place } as const;
    const open = { first: 4, next: 8, state: "open", attempts: 1, place: undefined } as const;
    const guilty = (first: number) => ({ ...open, first, next: first + 1, state: "guilty" }) as const;
    const failed = (first: number, cause: "fault" | "death" | "oom") => ({
      ...{ first, next: first + 1, attempts: 2, cause, source: { path: "file:///a", line: first + 1 } },
      fault: { stage: "predict", type: "E", message: `item ${first}`, traceback: "" },
    });
    await saveParts(db, "split", 7, [{ ...good, next: 8, state: "open" }]);
    await saveParts(db, "split", 7, [good, open]);
    await saveParts(db, "split", 9, [guilty(0)]);
    expect(await partsOf(db, "split", 7)).toEqual([good, open]);
    expect(await openBatches(db, "split", 0, 10)).toEqual([7]);
    expect(await openBatches(db, "split", 8, 10)).toEqual([]);
    expect([await filesOfParts(db, "split"), await countPartial(db, "split")]).toEqual([[3], 1]);
    for (const [first, cause] of [
      [4, "fault"],
      [5, "death"],
      [6, "oom"],
      [7, "oom"],
    ] as const)
      await saveFailedItems(db, "split", 2, 7, failed(first, cause));
    await replaceParts(db, "split", 7, [good, ...[4, 5, 6, 7].map(guilty)]);
    await failSplitBatch(db, "split", 2, 7);
    // What decides how the job ends: out of memory before a death before an exception.
    expect(await countDeadly(db, "split")).toEqual({ failedByDeath: 0, failedByOom: 1 });
    expect(await firstDeadly(db, "split")).toMatchObject({
      ...{ batch_index: 7, error_json: expect.stringContaining("item 6") },
    });
    await setLetterError(db, { job_id: "split", batch_index: 7, round: 2, first_item: 5 }, "refused");
    await setLetterError(
      db,
      { job_id: "split", batch_index: 7, round: 1, first_item: 4 },
      "of a former round",
    );
    expect(await failedItems(db, "split", 7, 4, 2)).toMatchObject([
      { first_item: 5, letter_error: "refused", source_path: "file:///a", source_line: 6 },
      { first_item: 6, letter_error: null },
    ]);
    const batches = [{ batch_index: 7 }, { batch_index: 8 }];
    const [reopened, ...others] = await reopenedBatches(
      db,
      "split",
      batches,
      async (json) => !json.includes("item 6"),
    );
    expect(others).toEqual([]);
    await reopen(db, "split", reopened!, async () => {});
    expect(await partsOf(db, "split", 7)).toEqual([
      good,
      { ...open, next: 6, attempts: 0 },
      guilty(6),
      { ...open, first: 7, attempts: 0 },
    ]);
    expect((await failedItems(db, "split", 7, -1, 9)).map(({ first_item }) => first_item)).toEqual([6]);
  });

  it.runIf(isHere)("keeps sessions, oldest first, until they are removed", async () => {
    const session = (sha256: string, created_time: string) => ({
      ...{ sha256, created_time, key_id: "k", key_sha256: "x", expires_time: "e" },
    });
    const all = [session("b", "1"), session("a", "2"), session("c", "3")];
    for (const one of [all[2]!, all[0]!, all[1]!]) await addSession(db, one);
    expect(await allSessions(db)).toEqual(all);
    await removeSessions(db, ["b", "c", "absent"]);
    expect(await allSessions(db)).toEqual([all[1]]);
  });

  it.runIf(isHere)("keeps keys with their last use, and submissions, each once", async () => {
    const key = {
      ...{ id: "k-1", name: "ci 🚀", sha256: "x", scope: "predict" as const, api: null, created_time: "t" },
      ...{ rate: { requests: 5, seconds: 60 }, expires_time: null, revoked_time: null },
    };
    await addKey(db, key);
    expect(await allKeys(db)).toEqual([{ ...key, last_used_time: null }]);
    await saveKeyUse(db, ["k-0", "k-1"], "u");
    const next = { ...key, id: "k-2", sha256: "y", created_time: "u" };
    expect(await replaceKey(db, "k-1", "e", next)).toBe(true);
    for (const time of ["r", "s"]) await revokeKey(db, "k-1", time);
    const revoked = { ...key, expires_time: "e", revoked_time: "r", last_used_time: "u" };
    expect(await replaceKey(db, "k-1", "d", { ...next, id: "k-3", sha256: "z" })).toBe(false);
    expect(await allKeys(db)).toEqual([revoked, { ...next, last_used_time: null }]);
    const submission = await submissionKey("a", "once", Buffer.from("{}"));
    await saveSubmission(db, submission, "job-1", 1000);
    expect(await findSubmission(db, submission, 2000)).toBe("job-1");
    await expect(
      findSubmission(db, await submissionKey("a", "once", Buffer.from("[]")), 2000),
    ).rejects.toMatchObject({ code: "idempotency_key_reused" });
    expect(await findSubmission(db, submission, 2000 + 24 * 3_600_000)).toBeUndefined();
  });
});
