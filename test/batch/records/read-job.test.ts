/** The status of a job, from its row. */
import { describe, expect, it } from "vitest";
import type { JobRow } from "../../../src/batch/records/job-rows.ts";
import { jobStatus } from "../../../src/batch/records/read-job.ts";
import { JOB_STATUSES } from "../../../src/contracts/jobs.ts";

const ENDED = JOB_STATUSES.filter((status) => !["status_enqueuing", "status_running"].includes(status));

/** Ten batches, of which five succeeded and two finally failed. */
const ROW: JobRow = {
  ...{ job_id: "j", api_name: "a", api_id: "1", workers: 1, timeout_s: null, max_receive_count: 1 },
  ...{
    dead_letter_arn: null,
    dead_letter_queue: null,
    has_older_names: 0,
    isolates: 0,
    enqueuing_deaths: 0,
  },
  ...{ status: "status_running", closing: null, reason_json: null, round: 0, epoch: 1 },
  ...{ total_batch_count: 10, enqueued_batches: 10, enqueue_cursor_json: null },
  ...{ succeeded: 5, failed_attempts: 2, failed_batches: 2, success_us: 1 },
  ...{ created_time: "t0", start_time: "t1", end_time: null, round_started_time: null, pruned_time: null },
  ...{ paused: null, paused_time: null, queued_time: null, priority: 0 },
};

describe("batches_in_queue", () => {
  const inQueue = (given: Partial<JobRow>) =>
    jobStatus({ ...ROW, ...given }, "url", undefined).batches_in_queue;

  it("is what was enqueued and is not settled", () => {
    expect(inQueue({})).toBe(3);
    expect(inQueue({ status: "status_enqueuing", total_batch_count: null, enqueued_batches: 8 })).toBe(1);
    // The end is decided, but not yet recorded.
    expect(inQueue({ closing: "status_stopped" })).toBe(3);
  });

  it.each(ENDED)("is 0 after %s, though batches were never settled", (status) => {
    expect(inQueue({ status, closing: status, end_time: "t2" })).toBe(0);
    expect(inQueue({ status, closing: status, end_time: "t2", total_batch_count: null })).toBe(0);
  });
});

describe("the last round", () => {
  it("is named once the job was redriven or resumed", () => {
    const shown = (round: number, round_started_time: string | null) => {
      const { round: last, round_time } = jobStatus({ ...ROW, round, round_started_time }, "url", undefined);
      return [last, round_time];
    };
    expect(shown(1, null)).toEqual([undefined, undefined]);
    // Its start moves on with a pause.
    expect(shown(1, "t1")).toEqual([undefined, undefined]);
    expect(shown(3, "t3")).toEqual([3, "t3"]);
  });
});
