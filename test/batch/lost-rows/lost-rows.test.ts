/** Batches whose predictions were on a disk that is gone. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { reopenLostParts } from "../../../src/batch/lost-rows/lost-parts.ts";
import { uncountLostRows } from "../../../src/batch/lost-rows/lost-rows.ts";
import type { Database } from "../../../src/database/database.ts";
import {
  appendSegments,
  findSegment,
  markSettled,
  segmentsWithSettled,
  writeSettled,
} from "../../../src/database/segment-rows.ts";
import { BOTH_DATABASES, type EmptyDatabase } from "../../harness/both-databases.ts";

const SEGMENTS = 70;
const BATCHES_A_SEGMENT = 10;

describe.each(BOTH_DATABASES)("lost predictions, with %s", (_, open, isInstalled) => {
  let empty: EmptyDatabase;
  let db: Database;
  beforeAll(async () => {
    if (!isInstalled) return;
    empty = await open();
    db = empty.db;
  });
  afterAll(() => empty?.remove());

  const job = "job";
  const counts = async () =>
    (await db.all<Record<string, number>>("SELECT succeeded, failed_batches, success_us FROM jobs"))[0];
  const settled = async () => {
    const found: number[] = [];
    for (const segment of await segmentsWithSettled(db, job, 0, SEGMENTS))
      for (let i = 0; i < segment.batch_count; i++)
        if ((segment.settled[i >> 3]! & (1 << (i & 7))) !== 0) found.push(segment.first_batch + i);
    return found;
  };

  it.runIf(isInstalled)(
    "count as never run from the first batch that is in no part on, but for failures",
    async () => {
      await db.run(
        "INSERT INTO jobs (job_id, api_name, api_id, workers, status, created_time, epoch, succeeded, failed_batches, success_us) VALUES (?, 'a', '1', 1, 'status_running', '', 3, 698, 2, 69800)",
        [job],
      );
      for (let i = 0; i < SEGMENTS; i++) {
        const first_batch = i * BATCHES_A_SEGMENT;
        await appendSegments(db, job, [
          {
            first_batch,
            batch_count: BATCHES_A_SEGMENT,
            item_count: BATCHES_A_SEGMENT,
            ranges: [],
            has_blank_lines: false,
          },
        ]);
        const segment = (await findSegment(db, job, first_batch))!;
        for (let batch = first_batch; batch < first_batch + BATCHES_A_SEGMENT; batch++)
          markSettled(segment, batch);
        await writeSettled(db, job, segment);
      }
      // 500 has failed as a whole, and 600 has rows of some items.
      for (const batch of [500, 600])
        await db.run(
          "INSERT INTO batches (job_id, batch_index, round, attempts, failed, by_death, by_oom) VALUES (?, ?, 1, 1, 1, 0, 0)",
          [job, batch],
        );
      await db.run("INSERT INTO batch_parts VALUES (?, 600, 0, 1, 1, 0, 7, 0, 5, 1)", [job]);
      await db.run("INSERT INTO batch_parts VALUES (?, 100, 0, 1, 1, 0, 7, 0, 5, 1)", [job]);
      await expect(uncountLostRows({ db, jobId: job, epoch: 2 }, 123)).rejects.toThrow("another controller");
      expect(await uncountLostRows({ db, jobId: job, epoch: 3 }, 123)).toEqual({
        succeeded: 575,
        failedBatches: 1,
      });
      expect(await counts()).toEqual({ succeeded: 123, failed_batches: 1, success_us: 12_300 });
      expect(await settled()).toEqual([...Array.from({ length: 123 }, (_, i) => i), 500]);
      expect(await uncountLostRows({ db, jobId: job, epoch: 3 }, 123)).toEqual({
        succeeded: 0,
        failedBatches: 0,
      });
      await reopenLostParts(db, job, [7]);
      expect(await db.all("SELECT batch_index, state, file FROM batch_parts ORDER BY batch_index")).toEqual([
        { batch_index: 100, state: 1, file: 7 },
        { batch_index: 600, state: 0, file: 0 },
      ]);
    },
  );
});
