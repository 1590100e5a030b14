/** Requests that are due together. */
import { expect, it } from "vitest";
import { EXPIRED_AT_ONCE_MAX } from "../../../src/contracts/limits/predictions.ts";
import { PredictionRequest } from "../../../src/gateway/answers/prediction-request.ts";
import { Deadlines } from "../../../src/gateway/replicas/deadlines.ts";

it("expire in order, a few at once, although one that came between is due later", () => {
  const deadlines = new Deadlines();
  for (let id = 0; id <= 2 * EXPIRED_AT_ONCE_MAX; id++) {
    const arrived = {
      startedMs: 0,
      requestId: String(id),
      parts: [],
      bodyDone: () => {},
      isStillOpen: () => true,
    };
    deadlines.add(new PredictionRequest(undefined, arrived, undefined, false), id === 1 ? 200 : 100);
  }
  const expired: number[][] = [];
  for (const nowMs of [99, 100, 100, 101, 199, 200]) {
    const now: number[] = [];
    deadlines.expire(nowMs, ({ requestId }) => now.push(Number(requestId)));
    expired.push(now);
  }
  expect(expired.map(({ length }) => length)).toEqual([0, EXPIRED_AT_ONCE_MAX, EXPIRED_AT_ONCE_MAX, 0, 0, 1]);
  const dueFirst = Array.from({ length: 2 * EXPIRED_AT_ONCE_MAX + 1 }, (_, id) => id).filter(
    (id) => id !== 1,
  );
  expect(expired.flat()).toEqual([...dueFirst, 1]);
  expect(deadlines.size).toBe(0);
});
