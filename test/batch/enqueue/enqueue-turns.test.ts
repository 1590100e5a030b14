/** Jobs that enqueue in turns: when a turn ends, and that nothing is lost, read twice or out of order between turns. */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type EnqueueTurnEnd, enqueueJob } from "../../../src/batch/enqueue/enqueue-job.ts";
import { EnqueuePlaces } from "../../../src/batch/enqueue/enqueue-places.ts";
import { EnqueueTurn, EnqueueTurns } from "../../../src/batch/enqueue/enqueue-turns.ts";
import { itemsInFiles } from "../../../src/batch/records/items-file.ts";
import { jobInput } from "../../../src/batch/records/job-input.ts";
import { itemsFile } from "../../../src/contracts/data-layout.ts";
import {
  ENQUEUING_OF_AN_API_MAX,
  ENQUEUING_TURN_MAX_MS,
  ENQUEUING_TURN_MS,
} from "../../../src/contracts/limits/jobs.ts";
import type { Database } from "../../../src/database/database.ts";
import { migrate } from "../../../src/database/migrations.ts";
import { openSqliteDatabase } from "../../../src/database/sqlite.ts";
import { FileStore } from "../../../src/object-store/files/file-store.ts";
import type { ObjectStore } from "../../../src/object-store/object-store.ts";
import { UNWRITTEN } from "../../harness/unwritten-store.ts";

describe("a turn", () => {
  it("lasts for its time, and for twice the way back if that was longer", () => {
    const turn = new EnqueueTurn(1_000);
    expect(turn.isOver(1_000 + ENQUEUING_TURN_MS - 1)).toBe(false);
    expect(turn.isOver(1_000 + ENQUEUING_TURN_MS)).toBe(true);
    turn.progressed(1_000 + 2 * ENQUEUING_TURN_MS);
    turn.progressed(1_000 + 3 * ENQUEUING_TURN_MS);
    expect(turn.isOver(1_000 + 4 * ENQUEUING_TURN_MS - 1)).toBe(false);
    expect(turn.isOver(1_000 + 4 * ENQUEUING_TURN_MS)).toBe(true);
  });

  it("that came no further is followed by longer ones, up to a limit", () => {
    let turn = new EnqueueTurn(0).next(0, false);
    expect(turn.isOver(2 * ENQUEUING_TURN_MS - 1)).toBe(false);
    expect(turn.isOver(2 * ENQUEUING_TURN_MS)).toBe(true);
    expect(turn.next(0, true).isOver(2 * ENQUEUING_TURN_MS - 1)).toBe(false);
    for (let i = 0; i < 20; i++) turn = turn.next(0, false);
    expect(turn.isOver(ENQUEUING_TURN_MAX_MS - 1)).toBe(false);
    expect(turn.isOver(ENQUEUING_TURN_MAX_MS)).toBe(true);
  });
});

describe("jobs that take turns", () => {
  const never = new AbortController().signal;
  let nowMs = 0;
  const turnsOf = (places: EnqueuePlaces, api: string) => new EnqueueTurns(places, api, never, () => nowMs);

  it("keep their places for as long as nobody else waits", async () => {
    const places = new EnqueuePlaces();
    const turns = turnsOf(places, "a");
    expect(await turns.begin()).toBe(true);
    nowMs += 100 * ENQUEUING_TURN_MS;
    expect(turns.isOver(true)).toBe(false);
    const others = ["b", "b", "b", "b", "c", "c", "c", "c", "d", "d", "d", "d"];
    for (const api of others) await turnsOf(places, api).begin();
    nowMs += 100 * ENQUEUING_TURN_MS;
    expect(turns.isOver(true)).toBe(false);
  });

  it("let the other jobs of their API and those of others go first, in turn", async () => {
    const places = new EnqueuePlaces();
    const began: string[] = [];
    const begin = (api: string, name: string) => {
      const turns = turnsOf(places, api);
      void turns.begin().then(() => began.push(name));
      return turns;
    };
    const all = new Map<string, EnqueueTurns>();
    for (const api of ["a", "b", "c", "d"])
      for (let i = 0; i < ENQUEUING_OF_AN_API_MAX + 1; i++) all.set(`${api}${i}`, begin(api, `${api}${i}`));
    await settled();
    expect(began).not.toContain("a4");
    const late = begin("e", "e0");
    await settled();
    expect(late.describeWaiting()).toMatch(/^the job waits until it may be enqueued: 16 jobs of this server/);
    const [a0, a1] = [all.get("a0")!, all.get("a1")!];
    expect(a0.isOver(true)).toBe(false);
    nowMs += ENQUEUING_TURN_MS;
    expect(a0.isOver(true)).toBe(true);
    const again: string[] = [];
    void a0.next(true).then(() => again.push("a0"));
    void a1.next(true).then(() => again.push("a1"));
    await settled();
    expect(began.slice(16)).toEqual(["a4", "e0"]);
    expect(again).toEqual([]);
    expect(a0.describeWaiting()).toMatch(/^the job waits/);
    for (const name of ["b0", "c0", "d0", "a2"]) all.get(name)!.end();
    await settled();
    expect(began.slice(18)).toEqual(["b4", "c4", "d4"]);
    expect(again).toEqual(["a0"]);
    late.end();
    await settled();
    expect(again).toEqual(["a0", "a1"]);
    expect(a0.describeWaiting()).toBeUndefined();
  });

  const settled = () => new Promise((resolve) => setImmediate(resolve));
});

describe("the input of a job that enqueues in turns", () => {
  const signal = new AbortController().signal;
  let directory: string;
  let db: Database;
  beforeEach(async () => {
    directory = realpathSync(mkdtempSync(join(tmpdir(), "quern-turns-")));
    mkdirSync(join(directory, "in"));
    db = openSqliteDatabase(join(directory, "quern.db"));
    await migrate(db);
  });
  afterEach(async () => {
    await db.close();
    rmSync(directory, { recursive: true });
  });

  let jobs = 0;
  async function newJob(kind: "lines" | "paths", batch_size: number, store_paths: string[]) {
    const jobId = `job-${jobs++}`;
    await db.run(
      "INSERT INTO jobs (job_id, api_name, api_id, workers, status, created_time) VALUES (?, 'a', '1', 1, 'status_enqueuing', '')",
      [jobId],
    );
    const includes = ["**.jsonl", "**.jsonl.gz"];
    const submission = JSON.stringify({ kind, batch_size, store_paths, includes });
    await db.run("INSERT INTO job_submissions VALUES (?, ?)", [jobId, submission]);
    return jobId;
  }

  /** One turn after the other. A crash: the next turn knows only what is committed. */
  async function enqueue(jobId: string, store: ObjectStore, mayStop: () => boolean, isCrash: () => boolean) {
    const itemsPath = itemsFile(directory, jobId);
    const items = itemsInFiles(directory);
    const options = {
      ...{ db, jobId, epoch: 0, reach: () => {}, diskWait: { onWait: () => {}, signal } },
      ...{
        store,
        input: jobInput({ db, jobId, store, items }),
        signal,
        isCancelled: () => false,
        onWait: () => {},
      },
    };
    // As EnqueueTurn: a turn that came no further is followed by longer ones.
    let [length, asked] = [1, 0];
    const isTurnOver = (hasProgress: boolean) => hasProgress && ++asked >= length && mayStop();
    let end: EnqueueTurnEnd = { kind: "turn_over", kept: undefined, isFurther: true };
    let turns = 0;
    for (; end.kind === "turn_over"; turns++) {
      if (!end.isFurther) length *= 2;
      asked = 0;
      end = await enqueueJob({
        ...options,
        own: items.writer(jobId, store),
        isTurnOver,
        kept: isCrash() ? undefined : end.kept,
      });
    }
    expect(end).toMatchObject({ kind: "enqueued" });
    return { turns, ...(await committed(jobId, itemsPath)) };
  }

  /** The lines of all segments in their order, and the batches of each. */
  async function committed(jobId: string, itemsPath: string) {
    const sql =
      "SELECT first_batch, batch_count, item_count, ranges_json FROM segments WHERE job_id = ? ORDER BY first_batch";
    const rows = await db.all<{
      first_batch: number;
      batch_count: number;
      item_count: number;
      ranges_json: string;
    }>(sql, [jobId]);
    const text = rows
      .flatMap((row) => JSON.parse(row.ranges_json) as { path: string; start: number; end: number }[])
      .map(({ path, start, end }) => {
        const file = path === "" ? itemsPath : path.slice("file://".length);
        const piece = readFileSync(file).subarray(start, end).toString();
        return piece === "" || piece.endsWith("\n") ? piece : `${piece}\n`;
      });
    const segments = rows.map(({ first_batch, batch_count, item_count }) => [
      first_batch,
      batch_count,
      item_count,
    ]);
    return {
      lines: text
        .join("")
        .split("\n")
        .filter((line) => line !== ""),
      segments,
    };
  }

  const store = () =>
    new FileStore([{ path: join(directory, "in"), isReadOnly: true }], directory, join(directory, "none"));
  const filesOf = fc.array(
    fc.record({
      name: fc.constantFrom("a/1", "a/2", "a/b/3", "c", "d/4", "e", "f", "g", "h/5"),
      lines: fc.nat({ max: 12 }),
      suffix: fc.constantFrom(".jsonl", ".jsonl.gz", ".other"),
    }),
    { minLength: 1, maxLength: 30 },
  );

  it("is enqueued completely, once and in order, however the turns and crashes fall", async () => {
    await fc.assert(
      fc.asyncProperty(
        filesOf,
        fc.constantFrom("lines" as const, "paths" as const),
        fc.integer({ min: 1, max: 5 }),
        fc.array(fc.boolean(), { minLength: 1, maxLength: 9 }),
        fc.array(fc.boolean(), { minLength: 1, maxLength: 9 }),
        async (files, kind, batchSize, stops, crashes) => {
          const root = mkdtempSync(join(directory, "in", "x"));
          for (const { name, lines, suffix } of [{ name: "0", lines: 1, suffix: ".jsonl" }, ...files]) {
            mkdirSync(join(root, name, ".."), { recursive: true });
            const text = Array.from({ length: lines }, (_, i) => `{"${name}${suffix}": ${i}}`).join("\n");
            writeFileSync(join(root, name + suffix), suffix.endsWith(".gz") ? gzipSync(text) : text);
          }
          const prefixes = ["e", "none", "a/", ""].map((prefix) => `file://${root}/${prefix}`);
          const wanted = await enqueue(
            await newJob(kind, batchSize, prefixes),
            store(),
            () => false,
            () => false,
          );
          expect(wanted.turns).toBe(1);
          let [at, crash] = [0, 0];
          const stop = () => stops[at++ % stops.length]!;
          const turned = await enqueue(await newJob(kind, batchSize, prefixes), store(), stop, () => {
            return crash++ < 10 && crashes[crash % crashes.length]!;
          });
          expect(turned.lines).toEqual(wanted.lines);
          expect(turned.segments).toEqual(wanted.segments);
        },
      ),
      { numRuns: 10 },
    );
  });

  it("is not listed again, also where nothing is selected", async () => {
    const listed: (string | undefined)[] = [];
    const pages = Array.from({ length: 6 }, (_, i) => [{ path: `file:///x/${i}.other`, bytes: 1 }]);
    pages.splice(3, 0, []);
    pages.push([{ path: "file:///x/7.jsonl", bytes: 1 }]);
    const listing: ObjectStore = {
      ...UNWRITTEN,
      parallelListings: () => 1,
      open: () => Promise.reject(new Error("is not opened")),
      async *list(_, { after }) {
        listed.push(after);
        yield* pages.filter(([file]) => after === undefined || file === undefined || file.path > after);
      },
    };
    let asked = 0;
    const isTurnOver = () => ++asked % 2 === 0;
    const { lines } = await enqueue(
      await newJob("paths", 10, ["file:///x/"]),
      listing,
      isTurnOver,
      () => false,
    );
    expect(lines).toEqual(['"file:///x/7.jsonl"']);
    expect(listed.slice(0, 4)).toEqual([
      undefined,
      "file:///x/1.other",
      "file:///x/2.other",
      "file:///x/4.other",
    ]);
  });

  it("is not read again, but for the lines of a segment with many files, and the beginning of compressed ones", async () => {
    const line = `{"text": "${"x".repeat(990)}"}\n`;
    writeFileSync(join(directory, "in", "long.jsonl"), line.repeat(3000));
    const files = store();
    let bytes = 0;
    const counting: ObjectStore = {
      ...UNWRITTEN,
      parallelListings: () => 1,
      list: (prefix, options) => files.list(prefix, options),
      open: async (path) => {
        const object = await files.open(path);
        const read: typeof object.read = async (...where) => {
          const length = await object.read(...where);
          bytes += length;
          return length;
        };
        return { path, bytes: object.bytes, etag: object.etag, read, close: () => object.close() };
      },
    };
    const job = await newJob("lines", 7, [`file://${directory}/in/`]);
    const { turns, lines } = await enqueue(
      job,
      counting,
      () => true,
      () => false,
    );
    expect(lines.length).toBe(3000);
    expect(turns).toBeGreaterThan(5);
    // Only the beginning of the line that is not complete at the end of a read.
    expect(bytes).toBeLessThan(3000 * line.length + turns * line.length);
  });
});
