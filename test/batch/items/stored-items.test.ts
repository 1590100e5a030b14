/** The items of jobs as objects: appended in pieces, cut after a kill, and read as one. */
import { mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openLog } from "../../../src/base/log.ts";
import { lastBefore } from "../../../src/batch/items/pieced-object.ts";
import { StoredItems } from "../../../src/batch/items/stored-items.ts";
import type { Database } from "../../../src/database/database.ts";
import { OWN_PREFIX, ServerStore } from "../../../src/object-store/backends/server-store.ts";
import { FileStore } from "../../../src/object-store/files/file-store.ts";
import type { ObjectStore, OpenObject } from "../../../src/object-store/object-store.ts";
import { Garbage } from "../../../src/state/garbage.ts";
import { BOTH_DATABASES, type EmptyDatabase } from "../../harness/both-databases.ts";

const BYTES = Buffer.from(Array.from({ length: 300 }, (_, i) => (i * 7) % 251));

async function contentOf(object: OpenObject, piece: number): Promise<Buffer> {
  const content = Buffer.alloc(object.bytes);
  for (let at = 0; at < content.length; ) {
    const read = await object.read(content, at, at, Math.min(piece, content.length - at));
    expect(read).toBeGreaterThan(0);
    at += read;
  }
  await object.close();
  return content;
}

describe.each(BOTH_DATABASES)("items in a state, with %s", (_, open, isInstalled) => {
  let empty: EmptyDatabase;
  let db: Database;
  let directory: string;
  let store: ObjectStore;
  let jobs = 0;
  beforeAll(async () => {
    if (!isInstalled) return;
    empty = await open();
    db = empty.db;
    directory = realpathSync(mkdtempSync(join(tmpdir(), "quern-items-")));
    const files = new FileStore([{ path: directory, isReadOnly: false }], tmpdir(), undefined);
    store = new ServerStore(files, OWN_PREFIX, `file://${directory}/`);
  });
  afterAll(async () => {
    await empty?.remove();
    if (isInstalled) rmSync(directory, { recursive: true });
  });

  const newJob = async (epoch: number) => {
    const jobId = `job-${jobs++}`;
    await db.run(
      "INSERT INTO jobs (job_id, api_name, api_id, workers, status, created_time, epoch) VALUES (?, 'a', '1', 1, 'status_enqueuing', '', ?)",
      [jobId, epoch],
    );
    return jobId;
  };
  const itemsOf = (epoch: number) => new StoredItems({ db, epoch, store });
  const stored = () => readdirSync(directory, { recursive: true }).map(String);

  it.runIf(isInstalled)(
    "have the same bytes, wherever a controller was killed and however they are read",
    async () => {
      const step = fc.record({
        bytes: fc.integer({ min: 1, max: 60 }),
        kill: fc.boolean(),
        lost: fc.integer({ min: 0, max: 40 }),
      });
      await fc.assert(
        fc.asyncProperty(
          fc.array(step, { minLength: 1, maxLength: 12 }),
          fc.integer({ min: 1, max: 90 }),
          async (steps, piece) => {
            let epoch = 1;
            const jobId = await newJob(epoch);
            let writer = itemsOf(epoch).writer(jobId, store);
            await writer.open(0);
            for (const { bytes, kill, lost } of steps) {
              writer.append(BYTES.subarray(writer.bytes, Math.min(BYTES.length, writer.bytes + bytes)));
              await writer.flush();
              if (!kill) continue;
              // The commit of the segments named less than what was flushed.
              const committed = Math.max(0, writer.bytes - lost);
              await db.run("UPDATE jobs SET epoch = ? WHERE job_id = ?", [++epoch, jobId]);
              writer = itemsOf(epoch).writer(jobId, store);
              await writer.open(committed);
            }
            writer.append(BYTES.subarray(writer.bytes));
            await writer.flush();
            expect(await contentOf(await itemsOf(epoch).open(jobId, store), piece)).toEqual(BYTES);
          },
        ),
        { numRuns: 30 },
      );
    },
  );

  it.runIf(isInstalled)("are not written by a former owner", async () => {
    const jobId = await newJob(5);
    const writer = itemsOf(4).writer(jobId, store);
    await writer.open(0);
    writer.append(BYTES);
    await expect(writer.flush()).rejects.toThrow("another controller");
  });

  it.runIf(isInstalled)(
    "of submissions are garbage until a job names them, and after it is pruned",
    async () => {
      const jobId = await newJob(1);
      const sweep = (epoch: number) =>
        new Garbage({ db, store, epoch, log: openLog("test", "/dev/null") }).runOnce();
      await itemsOf(1).write(jobId, BYTES);
      await itemsOf(1).write("cut-off", BYTES);
      expect(await sweep(1)).toBe(0);
      await itemsOf(1).write("refused", BYTES);
      await itemsOf(1).forget("refused");
      expect(await sweep(1)).toBe(1);
      await db.transaction((tx) => itemsOf(1).named(tx, jobId));
      expect(await sweep(2)).toBe(1);
      expect(stored()).toContain(join("jobs", jobId, "items"));
      expect(stored()).not.toContain(join("jobs", "cut-off", "items"));
      await db.run("INSERT INTO job_submissions VALUES (?, ?)", [
        jobId,
        '{"kind":"items","batch_size":1,"batch_count":1}',
      ]);
      await db.transaction((tx) => itemsOf(2).giveUp(tx, jobId));
      expect(await sweep(2)).toBe(1);
      expect(stored()).not.toContain(join("jobs", jobId, "items"));
    },
  );
});

describe("the piece of a position", () => {
  it("is the last that begins at or before it", () => {
    const pieces = [{ start: 0 }, { start: 4 }, { start: 9 }];
    expect([0, 3, 4, 8, 9, 100].map((at) => lastBefore(pieces, at))).toEqual([0, 0, 1, 1, 2, 2]);
    expect(lastBefore([], 0)).toBe(-1);
  });
});
