/** Which queue of SQS is next, among many with messages and many that do not respond. */
import { describe, expect, it } from "vitest";
import { QueueTurns } from "../../../src/batch/letters/queue-turns.ts";
import {
  SQS_PAUSE_FIRST_MS,
  SQS_PAUSE_MAX_MS,
  SQS_PAUSE_OF_A_QUEUE_MS,
  SQS_PAUSE_SHORT_MS,
  SQS_QUEUES_AT_ONCE,
  SQS_QUEUES_OF_AN_API_AT_ONCE,
} from "../../../src/contracts/limits/jobs.ts";

function turnsOf(queues: Record<string, readonly string[]>) {
  const turns = new QueueTurns();
  for (const [api, names] of Object.entries(queues)) for (const queue of names) turns.add({ queue, api });
  return turns;
}

const named = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}`);

function begun(turns: QueueTurns): string[] {
  const queues: string[] = [];
  for (let queue = turns.next(); queue !== undefined; queue = turns.next()) queues.push(queue);
  return queues;
}

describe("queues of SQS", () => {
  it("are sent to at once up to a limit, of each API and in all", () => {
    const turns = turnsOf({ a: named("a", 100) });
    expect(begun(turns)).toEqual(named("a", SQS_QUEUES_OF_AN_API_AT_ONCE));
    for (const api of ["b", "c", "d", "e"]) for (const queue of named(api, 100)) turns.add({ queue, api });
    expect(begun(turns)).toHaveLength(SQS_QUEUES_AT_ONCE - SQS_QUEUES_OF_AN_API_AT_ONCE);
    turns.sent("a0");
    expect([turns.next(), turns.next()]).toEqual(["a4", undefined]);
  });

  it("take turns, also if one always has more messages", () => {
    const turns = turnsOf({ a: ["long", ...named("a", 5)] });
    begun(turns);
    turns.sent("long");
    expect(turns.next()).toBe("a3");
    turns.isEmpty("a0");
    expect(turns.next()).toBe("a4");
    turns.isEmpty("a1");
    expect(turns.next()).toBe("long");
  });

  it("are tried again if messages came while they were sent to", () => {
    const turns = turnsOf({ a: ["q"] });
    turns.next();
    turns.add({ queue: "q", api: "a" });
    turns.isEmpty("q");
    expect(turns.next()).toBe("q");
    turns.isEmpty("q");
    expect(turns.next()).toBeUndefined();
    turns.add({ queue: "q", api: "b" });
    expect(turns.next()).toBe("q");
  });

  it("pause for longer each time they do not respond, and not after they did", () => {
    const turns = turnsOf({ a: ["q"] });
    const pause = (nowMs: number) => {
      expect(turns.next()).toBe("q");
      const isFirst = turns.pause("q", nowMs);
      turns.add({ queue: "q", api: "a" });
      expect(turns.next()).toBeUndefined();
      return [isFirst, turns.resume(nowMs)! - nowMs];
    };
    expect(pause(0)).toEqual([true, SQS_PAUSE_FIRST_MS]);
    expect(turns.resume(SQS_PAUSE_FIRST_MS)).toBeUndefined();
    expect(pause(10_000)).toEqual([false, 2 * SQS_PAUSE_FIRST_MS]);
    for (let times = 0; times < 4; times++) {
      turns.resume(Number.MAX_SAFE_INTEGER);
      pause(0);
    }
    turns.resume(Number.MAX_SAFE_INTEGER);
    expect(pause(0)).toEqual([false, SQS_PAUSE_SHORT_MS]);
    turns.resume(Number.MAX_SAFE_INTEGER);
    turns.next();
    turns.sent("q");
    expect(pause(0)).toEqual([true, SQS_PAUSE_FIRST_MS]);
  });

  it("that do not respond pause so long that each API tries one in two seconds", () => {
    const turns = turnsOf({ a: named("a", 1000), b: ["b"] });
    for (let failed = 0; failed < 1001; failed++) turns.pause(turns.next()!, 0);
    const hourMs = 3_600_000;
    let tries = 0;
    for (let nowMs = 0; nowMs < hourMs; nowMs = turns.resume(nowMs)!) {
      for (const queue of begun(turns)) {
        if (queue !== "b") tries++;
        turns.pause(queue, nowMs);
      }
    }
    expect(tries).toBeLessThanOrEqual(hourMs / SQS_PAUSE_OF_A_QUEUE_MS);
    // A queue of another API is not held up by these.
    expect(turns.resume(hourMs)! - hourMs).toBeLessThanOrEqual(SQS_PAUSE_SHORT_MS);
    const many = turnsOf({ a: named("a", 5000) });
    for (let failed = 0; failed < 5000; failed++) many.pause(many.next()!, 0);
    expect(many.resume(SQS_PAUSE_MAX_MS)).toBeUndefined();
  });
});
