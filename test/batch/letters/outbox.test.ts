/** The outbox, with a database and queues of the test's own. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type DeadLetter, lettersOf, makeLetter, saveLetter } from "../../../src/batch/letters/letters.ts";
import { Outbox, type OutboxDeps } from "../../../src/batch/letters/outbox.ts";
import type { Delivered } from "../../../src/batch/letters/sqs.ts";
import {
  LETTERS_A_REQUEST,
  SQS_GIVEN_UP_MS,
  SQS_QUEUES_OF_AN_API_AT_ONCE,
} from "../../../src/contracts/limits/jobs.ts";
import type { Database } from "../../../src/database/database.ts";
import { migrate } from "../../../src/database/migrations.ts";
import { openSqliteDatabase } from "../../../src/database/sqlite.ts";
import { eventually } from "../../harness/eventually.ts";

const arn = (name: string) => `arn:aws:sqs:us-east-1:1:${name}`;

describe("the outbox", () => {
  let directory: string;
  let db: Database;
  let outbox: Outbox;
  let send: (name: string, letters: readonly DeadLetter[]) => Promise<Delivered>;
  let lines: string[];
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "quern-outbox-"));
    db = openSqliteDatabase(join(directory, "quern.db"));
    await migrate(db);
    lines = [];
    outbox = new Outbox({
      db,
      log: { error: (about: unknown) => expect.unreachable(String(about)) },
      send: (queue: string, letters: readonly DeadLetter[]) => send(queue.split(":").at(-1)!, letters),
      jobLog: (_job: string, line: string) => lines.push(line),
    } as unknown as OutboxDeps);
  });
  afterEach(async () => {
    await outbox.stop();
    await db.close();
    rmSync(directory, { recursive: true });
  });

  const save = (name: string, count: number, sent_time?: string) =>
    db.transaction(async (tx) => {
      for (let batch_index = 0; batch_index < count; batch_index++) {
        const about = { api_name: "jobs", job_id: name, batch_index, round: 1, receiveCount: 1 };
        const error = { type: "E", message: "", traceback: "" };
        const letter = makeLetter({ queue: arn(name), body: Buffer.from("[]"), error, ...about });
        await saveLetter(tx, { ...letter, sent_time: sent_time ?? letter.sent_time });
      }
    });
  const count = async (name: string) => (await lettersOf(db, arn(name), "", 1_000)).length;
  const taken = (letters: readonly DeadLetter[]): Delivered => ({ sent: [...letters], refused: [] });

  it("sends to a queue that is new while another one has messages without end", async () => {
    const requests: string[] = [];
    send = async (name, letters) => {
      requests.push(name);
      if (name === "attack") await save("attack", LETTERS_A_REQUEST);
      return taken(letters);
    };
    await save("attack", 25);
    await outbox.start();
    await eventually("it sends", () => requests.length > 5);
    await save("victim", 1);
    outbox.wake({ queue: arn("victim"), api: "other" });
    await eventually("the message is sent", () => requests.includes("victim"));
    await eventually("it goes on", () => requests.length - requests.indexOf("victim") > 5);
    await eventually("the message is deleted", async () => (await count("victim")) === 0);
  });

  it("sends in order, and each message once", async () => {
    const batches: number[] = [];
    send = async (_name, letters) => {
      batches.push(...letters.map(({ batch_index }) => batch_index));
      return taken(letters);
    };
    await save("q", 35);
    await outbox.start();
    await eventually("all are sent", async () => (await count("q")) === 0);
    expect(batches).toEqual(Array.from({ length: 35 }, (_, i) => i));
  });

  it("tries few queues at once, however many do not respond", async () => {
    let [trying, most, tries] = [0, 0, 0];
    const fail: ((error: Error) => void)[] = [];
    send = (name) => {
      if (name.startsWith("healthy")) return Promise.resolve({ sent: [], refused: [] });
      most = Math.max(most, ++trying);
      tries++;
      return new Promise<never>((_, reject) => fail.push(reject)).finally(() => trying--);
    };
    for (let i = 0; i < 30; i++) {
      await save(`dead${i}`, 1);
      outbox.wake({ queue: arn(`dead${i}`), api: "a" });
    }
    await eventually("some are tried", () => trying === SQS_QUEUES_OF_AN_API_AT_ONCE);
    for (const reject of fail.splice(0)) reject(new Error("no answer"));
    // A failure keeps its place for a second.
    await new Promise((resolve) => setImmediate(resolve));
    expect(tries).toBe(SQS_QUEUES_OF_AN_API_AT_ONCE);
    await eventually("the next are tried", () => trying === SQS_QUEUES_OF_AN_API_AT_ONCE);
    for (const reject of fail.splice(0)) reject(new Error("no answer"));
    expect(most).toBe(SQS_QUEUES_OF_AN_API_AT_ONCE);
    expect(lines).toContain(
      `messages wait for ${arn("dead0")}: no answer; they are sent as soon as it responds`,
    );
  });

  it("gives up messages that a queue did not take for two weeks, and no others", async () => {
    await save("q", 4, new Date(Date.now() - SQS_GIVEN_UP_MS - 60_000).toISOString());
    send = async (_name, letters) => ({ sent: [letters[0]!], refused: [] });
    await save("young", 2, new Date(Date.now() - SQS_GIVEN_UP_MS + 60_000).toISOString());
    await outbox.start();
    await eventually("the old ones are gone", async () => (await count("q")) === 0);
    await eventually("the young one waits", () => lines.some((line) => line.includes("messages wait")));
    expect(await count("young")).toBe(1);
    // One was sent, three were given up.
    expect(lines.filter((line) => line.includes("within 14 days: it is too busy"))).toHaveLength(3);
  });
});

describe("with timers of its own, the outbox", () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  it("rests once a queue that did not answer has no more messages", async () => {
    let letters = [
      { message_id: "1", job_id: "j", body: Buffer.from("[1]"), attributes_json: "{}", sent_time: "3" },
    ];
    let asked = 0;
    const all = async (statement: string, [after] = [""]) => {
      if (statement.includes("api_name")) return after === "arn:" ? [{ queue: arn("q"), api: "a" }] : [];
      asked++;
      return letters;
    };
    const send = () => Promise.reject(new Error("no answer"));
    const deps = { db: { all }, log: { error: () => {} }, send, jobLog: () => {} };
    const outbox = new Outbox(deps as unknown as OutboxDeps);
    await outbox.start();
    await vi.advanceTimersByTimeAsync(100);
    expect(asked).toBe(1);
    letters = [];
    await vi.advanceTimersByTimeAsync(60_000);
    expect(asked).toBe(2);
    await outbox.stop();
  });
});
