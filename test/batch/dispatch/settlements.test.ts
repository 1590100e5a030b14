/** What was reported of batches, until the commit that counts them. */
import { beforeEach, describe, expect, it } from "vitest";
import { Settlements } from "../../../src/batch/dispatch/settlements.ts";
import { Search } from "../../../src/batch/isolate/search.ts";
import { insertJob } from "../../../src/batch/records/job-rows.ts";
import { NO_ROWS, type SettledRows } from "../../../src/batch/rows/rows-place.ts";
import type { Database } from "../../../src/database/database.ts";
import { appendSegments, type Segment, unsettledSegments } from "../../../src/database/segment-rows.ts";
import { eventually } from "../../harness/eventually.ts";
import { temporaryDatabase } from "../../harness/temporary-database.ts";

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

describe("a commit that waits", () => {
  const fault = { stage: "predict", type: "E", message: "m", traceback: "" };
  let db: Database;
  let settlements: Settlements;
  let segment: Segment;
  let errors: Error[];
  /** Each transaction waits for the one that was set when it began. */
  let gate: Promise<void>;
  /** The number of transactions that have begun. */
  let begun: number;

  beforeEach(async () => {
    const temporary = await temporaryDatabase();
    db = temporary.db;
    const sent = { workers: 1, timeout_s: null, max_receive_count: 1, dead_letter_arn: null };
    const named = { job_id: "j", api_name: "a", api_id: "v", dead_letter_queue: null, has_older_names: 0 };
    const times = { created_time: "2026-01-01T00:00:00Z", submission_json: "{}", config_json: "{}" };
    await insertJob(db, { ...sent, ...named, ...times });
    const ranges = [{ path: "", etag: "own", start: 0, end: 10 }];
    const counts = { batch_count: 4, item_count: 12 };
    await appendSegments(db, "j", [{ first_batch: 0, ...counts, ranges, has_blank_lines: false }]);
    [segment] = (await unsettledSegments(db, "j", 0, 1)) as [Segment];
    [errors, gate, begun] = [[], Promise.resolve(), 0];
    const gated = { ...bound(db), transaction: waiting };
    settlements = new Settlements(gated as Database, 0, {
      ...{ jobId: "j", epoch: 0, round: 1, reach: () => {} },
      ...{ onLetters: () => {}, onCommitted: () => {}, onError: (error) => errors.push(error) },
    });
    return temporary.remove;
  });

  const bound = (all: Database) => ({
    all: all.all.bind(all),
    run: all.run.bind(all),
    close: all.close.bind(all),
  });
  const waiting: Database["transaction"] = async (work) => {
    begun++;
    await gate;
    return db.transaction(work);
  };
  const durable = () => new Promise<void>((resolve) => settlements.commitSoon(resolve));
  const counts = async () => {
    const [row] = await db.all("SELECT succeeded, failed_batches, failed_attempts FROM jobs");
    return row;
  };
  /** Splits a batch of two items, of which the first is guilty. */
  const search = (batch: number) => {
    const found = Search.begin(2, 1);
    settlements.split(batch, found.all);
    const changed = found.failed(false);
    const failed = { first: 0, next: 1, attempts: 1, cause: "fault" as const, fault, source: undefined };
    settlements.failPart(segment, batch, found, { changed, failed });
    settlements.succeedPart(segment, batch, found, found.succeeded(undefined));
  };

  it("has nothing of what comes meanwhile: each failure is saved once, with its counts", async () => {
    let open: () => void = () => {};
    gate = new Promise((resolve) => {
      open = resolve;
    });
    settlements.succeed(segment, 0, undefined);
    const first = durable();
    await eventually("the commit waits", () => begun === 1);
    search(1);
    const second = durable();
    open();
    await Promise.all([first, second]);
    expect(errors).toEqual([]);
    expect(await counts()).toEqual({ succeeded: 1, failed_batches: 1, failed_attempts: 1 });
    expect(await db.all("SELECT batch_index FROM failed_items")).toHaveLength(1);
  });

  it("and fails is the last one: no bit of a batch is saved without its count", async () => {
    gate = Promise.reject(new Error("no database"));
    gate.catch(() => {});
    settlements.succeed(segment, 0, undefined);
    settlements.commitSoon(() => {});
    await eventually("the commit has failed", () => errors.length === 1);
    gate = Promise.resolve();
    settlements.succeed(segment, 1, undefined);
    settlements.commitSoon(() => {});
    await settlements.drain();
    expect(await counts()).toEqual({ succeeded: 0, failed_batches: 0, failed_attempts: 0 });
    const [saved] = (await unsettledSegments(db, "j", 0, 1)) as [Segment];
    expect([saved.settled_count, ...saved.settled]).toEqual([0, 0]);
  });
});
