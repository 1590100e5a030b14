/** What was reported of batches, until the commit that counts them. */
import { expect, it } from "vitest";
import { Settlements } from "../../../src/batch/dispatch/settlements.ts";
import { NO_ROWS, type SettledRows } from "../../../src/batch/rows/rows-place.ts";
import type { Database } from "../../../src/database/database.ts";
import type { Segment } from "../../../src/database/segment-rows.ts";

it("holds the rows of a batch as soon as they are reported, because their worker may be gone at the commit", () => {
  const held: SettledRows[] = [];
  const output = {
    hold: (settled: SettledRows) => held.push(settled),
    save: async () => {},
    committed: () => {},
    join: async () => NO_ROWS,
  };
  const settlements = new Settlements({} as Database, 0, {
    ...{ jobId: "j", epoch: 1, round: 1, reach: () => {}, output },
    ...{ onLetters: () => {}, onCommitted: () => {}, onError: () => {} },
  });
  const segment = { first_batch: 0, batch_count: 8, settled: Buffer.alloc(1) } as unknown as Segment;
  const place = { file: 3, offset: 0, bytes: 10, rows: 1 };
  settlements.succeed(segment, 5, place);
  expect(held).toEqual([{ batchIndex: 5, place }]);
  // It is counted once.
  settlements.succeed(segment, 5, place);
  expect(held).toHaveLength(1);
});
