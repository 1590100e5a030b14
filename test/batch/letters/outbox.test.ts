/** The outbox, with a database and a queue of the test's own. */
import { afterEach, expect, it, vi } from "vitest";
import { Outbox, type OutboxDeps } from "../../../src/batch/letters/outbox.ts";

afterEach(() => vi.useRealTimers());

it("the outbox rests once a queue that did not answer has no more messages", async () => {
  vi.useFakeTimers();
  let letters = [{ message_id: "1", job_id: "j", body: Buffer.from("[1]"), attributes_json: "{}" }];
  let asked = 0;
  const all = async (statement: string, [queue, after] = ["", ""]) => {
    if (!statement.includes("min(queue)")) return after === "" ? letters : [];
    if (queue !== "arn:") return [{ queue: null }];
    asked++;
    return [{ queue: letters.length === 0 ? null : "arn:aws:sqs:us-east-1:1:q" }];
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
