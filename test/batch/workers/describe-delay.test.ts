/** What a job says about those that come before it. */
import { expect, it } from "vitest";
import { describeDelay } from "../../../src/batch/workers/describe-delay.ts";

const none = { count: 0, waiting: 0, apis: [] };
const above = (count: number, waiting: number, ...apis: string[]) => ({ count, waiting, apis });
const before = (count: number) => ({ yielding: 0, before: count });

it.each([
  [undefined, none, ""],
  [before(0), none, "; it is the next to get some"],
  [before(1), none, "; 1 other comes before it"],
  [
    { yielding: 2, before: 3 },
    above(1, 1, "a"),
    "; 2 workers of other jobs yield to it after the batch in hand",
  ],
  [before(1), above(1, 1, "a"), "; 1 job of higher priority comes first (of API a)"],
  [undefined, above(2, 2, "a"), "; 2 jobs of higher priority come first (of API a)"],
  [before(4), above(3, 2, "a", "b"), "; 3 jobs of higher priority come first (of APIs a, b), then 2 others"],
  [
    before(8),
    above(7, 7, "a", "b", "c", "d", "e", "f", "g"),
    "; 7 jobs of higher priority come first (of APIs a, b, c, d, e and 2 more), then 1 other",
  ],
])("%j with %j above: %s", (delay, jobsAbove, sentence) => {
  expect(describeDelay(delay, jobsAbove, true)).toBe(sentence);
  expect(describeDelay(delay, jobsAbove, false)).toBe(sentence.replace(/ \(of .*\)/, ""));
});
