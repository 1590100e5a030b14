/** The age of messages in Quern's own dead letter queues. */
import { beforeEach, describe, expect, it } from "vitest";
import { firstUlidOf, newUlid } from "../../../src/base/ids.ts";
import { removeOldLetters } from "../../../src/batch/letters/old-letters.ts";
import { LETTERS_AGED_AT_ONCE } from "../../../src/contracts/limits/jobs.ts";
import type { Database } from "../../../src/database/database.ts";
import { temporaryDatabase } from "../../harness/temporary-database.ts";

const SENT_MS = Date.parse("2026-02-01T00:00:00.000Z");
const SQS = "arn:aws:sqs:eu-central-1:1:q";

describe("the retention of messages", () => {
  let db: Database;
  beforeEach(async () => {
    const temporary = await temporaryDatabase();
    db = temporary.db;
    return temporary.remove;
  });

  const send = async (queue: string, ms: number) => {
    const letter = [newUlid(ms), queue, "job", 0, 1, new Uint8Array(), "{}", ""];
    await db.run("INSERT INTO letters VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)", letter);
  };
  const queues = () => db.all("SELECT queue, count(*) AS count FROM letters GROUP BY queue ORDER BY queue");

  it("removes old messages of Quern's own queues, few in one statement, and none that wait for SQS", async () => {
    for (let i = 0; i < LETTERS_AGED_AT_ONCE; i++) await send(i % 2 === 0 ? "own" : SQS, SENT_MS - 1 - i);
    for (let i = 0; i < LETTERS_AGED_AT_ONCE; i++) await send("own.fifo", SENT_MS - 1);
    await send("own", SENT_MS);
    const changed: number[] = [];
    const observed: Database = {
      all: (...query) => db.all(...query),
      run: async (...statement) => {
        const changes = await db.run(...statement);
        changed.push(changes);
        return changes;
      },
      transaction: (work) => db.transaction(work),
      close: () => db.close(),
    };
    const removed = await removeOldLetters(observed, SENT_MS, () => false);
    expect(removed).toBe(1.5 * LETTERS_AGED_AT_ONCE);
    expect(Math.max(...changed)).toBeLessThanOrEqual(LETTERS_AGED_AT_ONCE);
    expect(await queues()).toEqual([
      { queue: SQS, count: LETTERS_AGED_AT_ONCE / 2 },
      { queue: "own", count: 1 },
    ]);
  });

  it("ends when the server stops", async () => {
    await send("own", SENT_MS - 1);
    expect(await removeOldLetters(db, SENT_MS, () => true)).toBe(0);
    expect(await queues()).toEqual([{ queue: "own", count: 1 }]);
  });

  it("compares times with the ids of messages", () => {
    expect(newUlid(SENT_MS - 1) < firstUlidOf(SENT_MS)).toBe(true);
    expect(newUlid(SENT_MS) > firstUlidOf(SENT_MS)).toBe(true);
    expect(firstUlidOf(-1)).toBe("0".repeat(26));
  });
});
