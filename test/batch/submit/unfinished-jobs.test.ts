/** How many jobs may be unfinished: no API leaves nothing to others. */
import { expect, it } from "vitest";
import { assertMayBegin } from "../../../src/batch/submit/unfinished-jobs.ts";
import { JOBS_UNFINISHED_MAX } from "../../../src/contracts/limits/jobs.ts";

/** Jobs that the APIs get if they submit all they can, one API after the other. */
function filled(apis: number): number[] {
  let all = 0;
  return Array.from({ length: apis }, () => {
    let mine = 0;
    for (;;) {
      try {
        assertMayBegin("jobs", mine, all);
      } catch {
        return mine;
      }
      mine++;
      all++;
    }
  });
}

it("an API alone may have two thirds of all unfinished jobs, and each later one some", () => {
  const jobs = filled(6);
  expect(jobs[0]).toBe(Math.ceil((2 * JOBS_UNFINISHED_MAX) / 3));
  for (const mine of jobs) expect(mine).toBeGreaterThan(0);
  expect(jobs.reduce((sum, mine) => sum + mine)).toBeLessThanOrEqual(JOBS_UNFINISHED_MAX);
});

it("the error says how many there are, and what to do", () => {
  expect(() => assertMayBegin("jobs", 3334, 3334)).toThrow(
    expect.objectContaining({
      code: "queue_full",
      message: expect.stringMatching(
        /^3334 jobs of jobs and 3334 jobs in all have not ended; .*quern job stop/,
      ),
    }),
  );
});
