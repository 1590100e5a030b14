import { beforeEach, describe, expect, it } from "vitest";
import { makeLetter, saveLetter } from "../../../src/batch/letters/letters.ts";
import {
  LETTERS_COUNTED_AT_ONCE,
  letterTotals,
  queueCounts,
  sqsQueues,
} from "../../../src/batch/letters/queue-counts.ts";
import type { NamedQueue } from "../../../src/batch/letters/queue-turns.ts";
import { Queues } from "../../../src/batch/letters/queues.ts";
import { QUEUES_COUNTED_MAX } from "../../../src/contracts/limits/jobs.ts";
import type { Database, SqlValue } from "../../../src/database/database.ts";
import { temporaryDatabase } from "../../harness/temporary-database.ts";

describe("messages of dead letter queues", () => {
  let db: Database;
  beforeEach(async () => {
    const temporary = await temporaryDatabase();
    db = temporary.db;
    return temporary.remove;
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

  it("are counted for each queue, if these are few", async () => {
    await send(["b", "a", "b"]);
    expect(await letterTotals(db)).toEqual([
      { queue: "a", messages: 1 },
      { queue: "b", messages: 2 },
    ]);
  });

  it("are found for SQS without those of Quern's own queues", async () => {
    const [first, second] = ["arn:aws:sqs:eu-west-1:1:a", "arn:aws:sqs:us-east-1:1:b"];
    await send(["z", second, "arn", first, "a", second]);
    const found: NamedQueue[] = [];
    for await (const named of sqsQueues(db)) found.push(named);
    expect(found).toEqual([
      { queue: first, api: "" },
      { queue: second, api: "" },
    ]);
  });

  it("are counted for a limited number of queues, and together for the others", async () => {
    const first = named("z", QUEUES_COUNTED_MAX);
    await send(first);
    const counted = first.sort().map((queue) => ({ queue, messages: 1 }));
    expect(await letterTotals(db)).toEqual(counted);
    // Later queues take no label from these, whatever their names and however many messages they get.
    const later = named("a", 1200);
    await send([...later, ...later, "z-0"]);
    counted[0]!.messages = 2;
    expect(await letterTotals(db)).toEqual([...counted, { queue: "(others)", messages: 2400 }]);
  });

  describe("of long queues", () => {
    const LONG = 2 * LETTERS_COUNTED_AT_ONCE;
    beforeEach(async () => {
      const row = (queue: string) =>
        `SELECT '${queue}' || '-' || printf('%06d', i), '${queue}', 'j', i, 1, x'5b5d', '{}', i`;
      for (const [queue, count] of [
        ["a", 1],
        ["b", LONG - 1],
        ["c", LONG],
        ["d", 3],
      ] as const)
        await db.run(
          `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${count - 1})
           INSERT INTO letters (message_id, queue, job_id, batch_index, round, body, attributes_json, sent_time)
           ${row(queue)} FROM n`,
        );
      // A message that came early to the queue with the last name.
      await db.run("UPDATE letters SET message_id = '0' WHERE message_id = 'd-000002'");
    });

    /** The database, and the statements that it is asked. */
    function watched() {
      const asked: { sql: string; values: readonly SqlValue[] }[] = [];
      const all: Database["all"] = (sql, values = []) => {
        asked.push({ sql, values });
        return db.all(sql, values);
      };
      return { asked, db: { ...db, all, run: db.run.bind(db) } as unknown as Database };
    }

    it("are counted some thousands in one statement, and each once", async () => {
      const { db: seen, asked } = watched();
      expect(await letterTotals(seen)).toEqual([
        { queue: "a", messages: 1 },
        { queue: "b", messages: LONG - 1 },
        { queue: "c", messages: LONG },
        { queue: "d", messages: 3 },
      ]);
      expect(asked).toHaveLength(5);
      expect(await queueCounts(seen, "c")).toEqual({ name: "c", messages: LONG, oldest_sent_time: "0" });
      expect(await queueCounts(seen, "d")).toEqual({ name: "d", messages: 3, oldest_sent_time: "2" });
      const counting = asked.filter(({ sql }) => sql.includes("count("));
      expect(new Set(counting.map(({ values }) => values.at(-1)))).toEqual(
        new Set([LETTERS_COUNTED_AT_ONCE]),
      );
      for (const { sql, values } of counting) {
        const plan = await db.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, values);
        expect(plan.map(({ detail }) => detail).join()).toContain(
          "SEARCH letters USING COVERING INDEX letters_by_queue",
        );
        expect(plan.map(({ detail }) => detail).join()).not.toContain("TEMP B-TREE FOR ORDER BY");
      }
    });

    it("are listed in pages, and a page counts only its own queues", async () => {
      const { db: seen, asked } = watched();
      const queues = new Queues(seen);
      const first = await queues.list("", 1);
      expect(first).toEqual({
        queues: [{ name: "a", messages: 1, oldest_sent_time: "0" }],
        next_cursor: "a",
      });
      expect(asked.filter(({ sql }) => sql.includes("count("))).toHaveLength(1);
      for (const { sql, values } of asked) {
        const plan = await db.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, values);
        expect(
          plan.map(({ detail }) => detail).filter((detail) => /^SCAN (letters|jobs)/.test(detail)),
        ).toEqual([]);
      }
      const second = await queues.list("a", 2);
      expect([second.queues.map(({ name, messages }) => [name, messages]), second.next_cursor]).toEqual([
        [
          ["b", LONG - 1],
          ["c", LONG],
        ],
        "c",
      ]);
      expect(await queues.list("c", 2)).toMatchObject({ queues: [{ name: "d" }], next_cursor: null });
      expect(await queues.list("d", 2)).toEqual({ queues: [], next_cursor: null });
    });
  });
});
