/** How the rows of a job are followed: what a poll reads, and when it ends. */
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { JobRow } from "../../../src/batch/records/job-rows.ts";
import { RESULTS_POLL_MS } from "../../../src/contracts/limits/outputs.ts";
import { type RowsSource, rowsOf } from "../../../src/control/jobs/followed-rows.ts";

const RUNNING = { status: "status_running", round: 1, succeeded: 0, failed_batches: 0 } as JobRow;
const JOB = { api_name: "api", job_id: "job" };

/** A job whose row is as in `rows` at one poll after the other; each reading has a batch of one row. */
function source(rows: Partial<JobRow>[]) {
  const readings: number[] = [];
  let polls = 0;
  const jobs: RowsSource = {
    records: { get: async () => ({ ...RUNNING, ...rows[Math.min(polls++, rows.length - 1)] }) },
    results: {
      async *committed(_, first) {
        readings.push(polls - 1);
        yield { bytes: Buffer.from(`row ${first};`), next: first + 1 };
      },
    },
  };
  return { jobs, readings, polls: () => polls };
}

async function textOf(rows: AsyncGenerator<Buffer>): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of rows) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

/** Polls until `work` is done. */
async function polling<T>(work: Promise<T>): Promise<T> {
  await vi.advanceTimersByTimeAsync(20 * RESULTS_POLL_MS);
  return work;
}

it("reads rows only after a change of what the job has counted", async () => {
  const waiting = Array<Partial<JobRow>>(5).fill({});
  const { jobs, readings } = source([
    ...waiting,
    { succeeded: 1 },
    { succeeded: 1, failed_attempts: 3 },
    { succeeded: 1, failed_batches: 1 },
    { succeeded: 1, failed_batches: 1, round: 2 },
    { succeeded: 1, failed_batches: 1, round: 2 },
    { succeeded: 1, failed_batches: 1, round: 2, status: "status_succeeded" },
  ]);
  const text = await polling(textOf(rowsOf(jobs, JOB, { first: 7, end: 100 }, true)));
  expect(readings).toEqual([0, 5, 7, 8, 10]);
  expect(text).toBe("row 7;row 8;row 9;row 10;row 11;");
});

it("ends at a poll after the reader has left, also if the job counts nothing more", async () => {
  const { jobs, polls } = source([{}]);
  const rows = rowsOf(jobs, JOB, { first: 0, end: 100 }, true);
  expect((await rows.next()).value).toEqual(Buffer.from("row 0;"));
  // As a response reads: it waits for the next piece when its client leaves.
  const waiting = rows.next().then(({ done }) => done);
  const left = rows.return(undefined);
  await polling(Promise.all([waiting, left]));
  const before = polls();
  await vi.advanceTimersByTimeAsync(10 * RESULTS_POLL_MS);
  expect([(await rows.next()).done, polls()]).toEqual([true, before]);
});

it("reads once without following", async () => {
  const { jobs, readings, polls } = source([{}]);
  const text = await textOf(rowsOf(jobs, JOB, { first: 0, end: 100 }, false));
  expect([text, readings, polls()]).toEqual(["row 0;", [0], 1]);
});

it("ends with the last batch that was asked for", async () => {
  const { jobs } = source([{}, { succeeded: 1 }]);
  const text = await polling(textOf(rowsOf(jobs, JOB, { first: 0, end: 2 }, true)));
  expect(text).toBe("row 0;row 1;");
});
