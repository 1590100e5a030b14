/** What the metrics count of dead letter queues, whose names submissions choose. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { makeLetter, saveLetter } from "../../../src/batch/letters/letters.ts";
import { jobTotals } from "../../../src/batch/records/job-totals.ts";
import { QUEUES_COUNTED_MAX } from "../../../src/contracts/limits/jobs.ts";
import type { Database } from "../../../src/database/database.ts";
import { migrate } from "../../../src/database/migrations.ts";
import { openSqliteDatabase } from "../../../src/database/sqlite.ts";

describe("the totals of messages", () => {
  let directory: string;
  let db: Database;
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "quern-totals-"));
    db = openSqliteDatabase(join(directory, "quern.db"));
    await migrate(db);
  });
  afterEach(async () => {
    await db.close();
    rmSync(directory, { recursive: true });
  });

  /** Each queue gets a message, in this order. */
  const send = (queues: readonly string[]) =>
    db.transaction(async (tx) => {
      for (const [batch_index, queue] of queues.entries()) {
        const about = { api_name: "jobs", job_id: "j", batch_index, round: 1, receiveCount: 1 };
        const error = { type: "E", message: "", traceback: "" };
        await saveLetter(tx, makeLetter({ queue, body: Buffer.from("[]"), error, ...about }));
      }
    });
  const named = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}-${i}`);

  it("are of each queue, if these are few", async () => {
    await send(["b", "a", "b"]);
    expect((await jobTotals(db)).letters).toEqual([
      { queue: "a", messages: 1 },
      { queue: "b", messages: 2 },
    ]);
  });

  it("count a limited number of queues separately, and lose no message", async () => {
    const first = named("z", QUEUES_COUNTED_MAX);
    await send(first);
    const counted = first.sort().map((queue) => ({ queue, messages: 1 }));
    expect((await jobTotals(db)).letters).toEqual(counted);
    // Later queues take no label from these, whatever their names and however many messages they get.
    const later = named("a", 1200);
    await send([...later, ...later, "z-0"]);
    counted[0]!.messages = 2;
    expect((await jobTotals(db)).letters).toEqual([...counted, { queue: "(others)", messages: 2400 }]);
  });
});
