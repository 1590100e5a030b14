/** Which jobs let others get their pods first. */
import { expect, it } from "vitest";
import { priorityThatWaits, type RivalJob } from "../../../src/batch/pods/priority-that-waits.ts";
import { STALLED_AFTER_MS } from "../../../src/contracts/limits/jobs.ts";

const job = (priority: number, more: Partial<RivalJob> = {}): RivalJob => {
  return { priority, queue: undefined, askingSinceMs: 0, hasNoPlace: true, ...more };
};

it.each<[string, RivalJob[], number]>([
  ["nobody", [], Number.NEGATIVE_INFINITY],
  ["nobody while all have a place", [job(5, { hasNoPlace: false })], Number.NEGATIVE_INFINITY],
  ["nobody once it has its workers", [job(5, { askingSinceMs: undefined })], Number.NEGATIVE_INFINITY],
  ["those below the highest that waits", [job(-3), job(5), job(9, { hasNoPlace: false })], 5],
  ["nobody for a job of a queue", [job(5, { queue: "gpus" }), job(-7)], -7],
])("jobs hold back %s", (_, jobs, expected) => {
  expect(priorityThatWaits(jobs, 1_000)).toBe(expected);
});

it("a stalled job holds nobody back, because it may fit nowhere", () => {
  const jobs = [job(5), job(1, { askingSinceMs: 10 })];
  expect(priorityThatWaits(jobs, STALLED_AFTER_MS - 1)).toBe(5);
  expect(priorityThatWaits(jobs, STALLED_AFTER_MS)).toBe(1);
});
