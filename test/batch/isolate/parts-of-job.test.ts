/** Questions about all parts of a job: exact across the pieces in which they are read, and never one long turn. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { saveParts } from "../../../src/batch/isolate/isolated-rows.ts";
import { countPartial, filesOfParts, PARTS_READ_AT_ONCE } from "../../../src/batch/isolate/parts-of-job.ts";
import type { BatchPart } from "../../../src/batch/isolate/search.ts";
import type { Database } from "../../../src/database/database.ts";
import { migrate } from "../../../src/database/migrations.ts";
import { openSqliteDatabase } from "../../../src/database/sqlite.ts";
import { leastLongestTurnMs } from "../../harness/turns.ts";

let db: Database;
beforeEach(async () => {
  db = openSqliteDatabase(":memory:");
  await migrate(db);
});
afterEach(() => db.close());

/** Parts of one item each, of which the `good` ones have rows in this file. */
function parts(count: number, good: (at: number) => boolean, file: number): BatchPart[] {
  return Array.from({ length: count }, (_, at) => {
    const part = { first: at, next: at + 1, attempts: 1 };
    const place = { file, offset: at, bytes: 1, rows: 1 };
    return good(at) ? { ...part, state: "good", place } : { ...part, state: "guilty", place: undefined };
  });
}

describe("the batches that are partial", () => {
  it.each([1, 2, PARTS_READ_AT_ONCE - 1, PARTS_READ_AT_ONCE, PARTS_READ_AT_ONCE + 1, 2 * PARTS_READ_AT_ONCE])(
    "are counted once each, and their files are found: with %i parts in one of them",
    async (many) => {
      await saveParts(
        db,
        "other",
        1,
        parts(3, () => true, 9),
      );
      await saveParts(
        db,
        "job",
        1,
        parts(many, (at) => at % 2 === 0, 3),
      );
      await saveParts(
        db,
        "job",
        2,
        parts(many, () => false, 7),
      );
      // Only the last part has rows.
      await saveParts(
        db,
        "job",
        4,
        parts(many, (at) => at === many - 1, 5),
      );
      await saveParts(
        db,
        "job",
        9,
        parts(2, () => true, 3),
      );
      expect(await countPartial(db, "job")).toBe(3);
      expect(await filesOfParts(db, "job")).toEqual([3, 5]);
      expect([await countPartial(db, "none"), await filesOfParts(db, "none")]).toEqual([0, []]);
    },
  );

  it("are counted in short turns, however many parts a job has", async () => {
    await db.run(
      `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1599999)
       INSERT INTO batch_parts (job_id, batch_index, first_item, next_item, state, attempts, file, position, bytes,
         row_count) SELECT 'job', i / 2500, 2 * (i % 2500), 2 * (i % 2500) + 1, 1, 1, 16777217, i, 1, 1 FROM n`,
    );
    expect(await countPartial(db, "job")).toBe(640);
    for (const ask of [countPartial, filesOfParts]) {
      const longestMs = await leastLongestTurnMs(40, async () => {
        await ask(db, "job");
      });
      expect(longestMs, ask.name).toBeLessThan(40);
    }
  });
});
