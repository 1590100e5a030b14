/** The order in which a job's batches go out, over a real database and a real file of items. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LeaseCursor } from "../../../src/batch/dispatch/lease-cursor.ts";
import { openItemsFile, writeItemsFile } from "../../../src/batch/records/items-file.ts";
import { InputError, type JobInput } from "../../../src/batch/records/job-input.ts";
import type { Database } from "../../../src/database/database.ts";
import { migrate } from "../../../src/database/migrations.ts";
import {
  appendSegments,
  findSegment,
  markSettled,
  writeSettled,
} from "../../../src/database/segment-rows.ts";
import { openSqliteDatabase } from "../../../src/database/sqlite.ts";

const LINE_BYTES = 16;
const BATCHES_MAX = 400;
/** Segments that are asked for at once, and those that are read ahead. */
const PAGE = 16;
const AHEAD = 2;

const directory = mkdtempSync(join(tmpdir(), "quern-cursor-"));
const file = join(directory, "items.jsonl");
let db: Database;
let jobs = 0;

/** The batch of one item, as all batches here are. */
const item = (batch: number) => JSON.stringify({ i: batch }).padEnd(LINE_BYTES - 1);

beforeAll(async () => {
  db = openSqliteDatabase(join(directory, "quern.db"));
  await migrate(db);
  await writeItemsFile(
    file,
    Buffer.from(Array.from({ length: BATCHES_MAX }, (_, i) => `${item(i)}\n`).join("")),
  );
});
afterAll(async () => {
  await db.close();
  rmSync(directory, { recursive: true });
});

/** The job's own file, and the operations on it. */
class Input implements JobInput {
  opened = 0;
  closed = 0;
  /** The segments that were read, one read each. */
  read = 0;
  error: Error | undefined;

  async open() {
    const object = await openItemsFile(file);
    this.opened++;
    const read = object.read.bind(object);
    const close = object.close.bind(object);
    return Object.assign(object, {
      read: async (...given: Parameters<typeof read>) => {
        if (this.error !== undefined) throw this.error;
        this.read++;
        return read(...given);
      },
      close: async () => {
        this.closed++;
        await close();
      },
    });
  }
}

/** A cursor over segments of so many batches, some of them settled in a run before. */
async function cursorOver(sizes: readonly number[], settled: readonly number[] = [], input = new Input()) {
  const job = `job-${jobs++}`;
  let first = 0;
  await db.transaction(async (tx) => {
    for (const size of sizes) {
      const ranges = [{ path: "", etag: "own", start: first * LINE_BYTES, end: (first + size) * LINE_BYTES }];
      const counts = { batch_count: size, item_count: size };
      await appendSegments(tx, job, [{ first_batch: first, ...counts, ranges, has_blank_lines: false }]);
      first += size;
    }
    for (const batch of settled) {
      const segment = (await findSegment(tx, job, batch))!;
      markSettled(segment, batch);
      await writeSettled(tx, job, segment);
    }
  });
  return new LeaseCursor(db, job, input, 1);
}

async function nextOf(cursor: LeaseCursor): Promise<number | undefined> {
  if (cursor.needsFill) await cursor.fill();
  return cursor.take();
}

async function allOf(cursor: LeaseCursor): Promise<number[]> {
  const taken: number[] = [];
  for (let batch = await nextOf(cursor); batch !== undefined; batch = await nextOf(cursor)) taken.push(batch);
  return taken;
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

function settle(cursor: LeaseCursor, ...batches: number[]): void {
  for (const batch of batches) expect(markSettled(cursor.find(batch).segment, batch)).toBe(true);
}

const payloadOf = (cursor: LeaseCursor, batch: number) => cursor.find(batch).payload(batch).toString();

describe("the lease cursor", () => {
  it.each<[string, number[], number[], number[]]>([
    ["leases the batches in order, across segments", [3, 1, 2], [], [0, 1, 2, 3, 4, 5]],
    ["leases nothing of a job without batches", [], [], []],
    ["leases no settled batch", [3, 2, 4], [0, 1, 2, 4, 6, 8], [3, 5, 7]],
    ["leases nothing of a settled job", [2], [0, 1], []],
  ])("%s", async (_, sizes, settled, expected) => {
    const cursor = await cursorOver(sizes, settled);
    expect(await allOf(cursor)).toEqual(expected);
    expect(cursor.isExhausted).toBe(true);
    expect(cursor.needsFill).toBe(false);
    expect(cursor.take()).toBeUndefined();
    await cursor.close();
  });

  it("leases nothing before it has read a segment", async () => {
    const cursor = await cursorOver([2]);
    expect(cursor.take()).toBeUndefined();
    expect(cursor.needsFill).toBe(true);
    expect(cursor.isExhausted).toBe(false);
    await cursor.fill();
    expect(cursor.take()).toBe(0);
    await cursor.close();
  });

  it("reads two segments ahead, and the next one once it has passed the first", async () => {
    const input = new Input();
    const cursor = await cursorOver([2, 2, 2, 2, 2], [], input);
    await cursor.fill();
    expect(input.read).toBe(AHEAD);
    expect(cursor.needsFill).toBe(false);
    for (const batch of [0, 1]) expect(cursor.take()).toBe(batch);
    expect(cursor.needsFill).toBe(false);
    expect(cursor.take()).toBe(2);
    expect(cursor.needsFill).toBe(true);
    await cursor.fill();
    expect(input.read).toBe(AHEAD + 1);
    await cursor.close();
  });

  it("reads once for callers that ask at the same time", async () => {
    const input = new Input();
    const cursor = await cursorOver([1, 1, 1, 1], [], input);
    await Promise.all([cursor.fill(), cursor.fill(), cursor.fill()]);
    expect(input.read).toBe(AHEAD);
    await cursor.close();
  });

  it("reads all segments, page by page", async () => {
    const sizes = Array<number>(2 * PAGE + 3).fill(2);
    const settled = [2 * PAGE, 2 * PAGE + 1];
    const cursor = await cursorOver(sizes, settled);
    expect(await allOf(cursor)).toEqual(upTo(2 * sizes.length).filter((batch) => !settled.includes(batch)));
    await cursor.close();
  });

  it("leases released batches first, in the order in which they were taken", async () => {
    const cursor = await cursorOver([6]);
    await cursor.fill();
    for (const batch of upTo(4)) expect(cursor.take()).toBe(batch);
    cursor.putBack([1, 3]);
    cursor.putBack([0]);
    expect(await allOf(cursor)).toEqual([0, 1, 3, 4, 5]);
    await cursor.close();
  });

  it("leases failed batches after released batches and before new ones", async () => {
    const cursor = await cursorOver([6]);
    await cursor.fill();
    for (const batch of upTo(5)) expect(cursor.take()).toBe(batch);
    cursor.putBack([3, 4]);
    cursor.putBehind(2);
    cursor.putBehind(0);
    expect(await allOf(cursor)).toEqual([3, 4, 2, 0, 5]);
    await cursor.close();
  });

  it("knows the suspects", async () => {
    const cursor = await cursorOver([3]);
    expect(cursor.isSuspect(1)).toBe(false);
    cursor.suspect(1);
    expect(upTo(3).map((batch) => cursor.isSuspect(batch))).toEqual([false, true, false]);
    await cursor.close();
  });

  it("finds each batch's segment and its items", async () => {
    const sizes = [3, 1, 5, 2, 4];
    const cursor = await cursorOver(sizes);
    const batches = await allOf(cursor);
    for (const batch of batches) expect(payloadOf(cursor, batch)).toBe(`[${item(batch)}]`);
    const first = (at: number) => sizes.slice(0, at).reduce((sum, size) => sum + size, 0);
    const expected = sizes.flatMap((size, at) => Array<number>(size).fill(first(at)));
    expect(batches.map((batch) => cursor.find(batch).segment.first_batch)).toEqual(expected);
    await cursor.close();
  });

  it("reuses the memory of settled segments only", async () => {
    const cursor = await cursorOver([2, 2, 2, 2]);
    await cursor.fill();
    const [first, second] = [cursor.find(0).memory, cursor.find(2).memory];
    for (const batch of upTo(5)) expect(await nextOf(cursor)).toBe(batch);
    settle(cursor, 0, 2, 3);
    cursor.dropSettled();
    expect(payloadOf(cursor, 1)).toBe(`[${item(1)}]`);
    await cursor.fill();
    expect(cursor.find(6).memory).toBe(second);
    expect(cursor.find(1).memory).toBe(first);
    settle(cursor, 1);
    cursor.dropSettled();
    expect(await allOf(cursor)).toEqual([5, 6, 7]);
    for (const batch of [4, 5, 6, 7]) expect(payloadOf(cursor, batch)).toBe(`[${item(batch)}]`);
    await cursor.close();
  });

  it("keeps its current segment although it is settled", async () => {
    const cursor = await cursorOver([2, 2]);
    await cursor.fill();
    for (const batch of upTo(2)) expect(cursor.take()).toBe(batch);
    settle(cursor, 0, 1);
    cursor.dropSettled();
    expect(cursor.find(1).segment.first_batch).toBe(0);
    expect(await allOf(cursor)).toEqual([2, 3]);
    cursor.dropSettled();
    expect(cursor.find(1).segment.first_batch).toBe(2);
    await cursor.close();
  });

  it("fails for all callers if the file has changed, and can then be closed", async () => {
    const input = new Input();
    input.error = new Error("it is gone");
    const cursor = await cursorOver([1, 1], [], input);
    const fills = await Promise.allSettled([cursor.fill(), cursor.fill()]);
    for (const fill of fills)
      expect(fill).toMatchObject({ status: "rejected", reason: expect.any(InputError) });
    await cursor.close();
    expect(input.closed).toBe(input.opened);
  });

  it("closes its file at the end, and if it is closed during a read", async () => {
    const input = new Input();
    const whole = await cursorOver([1, 1], [], input);
    await allOf(whole);
    expect([input.opened, input.closed]).toEqual([1, 1]);
    await whole.close();
    const reading = await cursorOver([1, 1, 1, 1], [], input);
    const filling = reading.fill();
    await reading.close();
    expect([input.read, input.opened, input.closed]).toEqual([2 + AHEAD, 2, 2]);
    await filling;
    const failing = await cursorOver([1], [], Object.assign(input, { error: new Error("it is gone") }));
    const failed = failing.fill();
    await failing.close();
    await expect(failed).rejects.toThrow("it is gone");
  });

  it("leases every batch until it is settled, whatever is released or fails", async () => {
    const step = fc.tuple(
      fc.constantFrom("take", "take", "take", "back", "behind", "settle", "drop"),
      fc.nat(),
    );
    const job = fc.record({
      sizes: fc.array(fc.integer({ min: 1, max: 10 }), { maxLength: 30 }),
      settled: fc.uniqueArray(fc.nat(150), { maxLength: 60 }),
      steps: fc.array(step, { maxLength: 120 }),
    });
    await fc.assert(
      fc.asyncProperty(job, async ({ sizes, settled, steps }) => {
        const total = sizes.reduce((sum, size) => sum + size, 0);
        const before = settled.filter((batch) => batch < total);
        const walk = new Walk(await cursorOver(sizes, before), total, before);
        for (const [what, random] of steps) await walk.step(what, random);
        await walk.finish();
      }),
      { numRuns: 40 },
    );
  });
});

/** Compares a cursor with a plain list of the batches to lease next. */
class Walk {
  private readonly cursor: LeaseCursor;
  private readonly fresh: number[];
  private readonly returned: number[] = [];
  private readonly out: number[] = [];

  constructor(cursor: LeaseCursor, total: number, settled: readonly number[]) {
    this.cursor = cursor;
    this.fresh = upTo(total).filter((batch) => !settled.includes(batch));
  }

  async step(what: string, random: number): Promise<void> {
    if (what === "take") return this.take();
    if (what === "drop") return this.cursor.dropSettled();
    if (this.out.length === 0) return;
    const at = random % this.out.length;
    if (what === "back") {
      const batches = this.out.splice(at);
      this.cursor.putBack(batches);
      this.returned.unshift(...batches);
    } else {
      const [batch] = this.out.splice(at, 1);
      if (what === "settle") settle(this.cursor, batch!);
      else {
        this.cursor.putBehind(batch!);
        this.returned.push(batch!);
      }
    }
  }

  /** Settles whatever is left, until there is nothing more. */
  async finish(): Promise<void> {
    while (this.fresh.length > 0 || this.returned.length > 0 || this.out.length > 0) {
      await this.take();
      await this.step("settle", 0);
      this.cursor.dropSettled();
    }
    await this.take();
    expect(this.cursor.isExhausted).toBe(true);
    await this.cursor.close();
  }

  private async take(): Promise<void> {
    const expected = this.returned.shift() ?? this.fresh.shift();
    const batch = await nextOf(this.cursor);
    expect(batch).toBe(expected);
    if (batch === undefined) return;
    expect(payloadOf(this.cursor, batch)).toBe(`[${item(batch)}]`);
    this.out.push(batch);
  }
}
