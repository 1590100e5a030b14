/** Turns a job's row into the records of the contract (docs/contract/jobs.md#job-record). */
import type { JobStatusRecord, WorkerCounts } from "../../contracts/jobs.ts";
import { hideInText } from "../../contracts/secrets.ts";
import { type JobRow, reasonOf } from "./job-rows.ts";
import { pausedBecause } from "./paused-jobs.ts";

/** The record without `config`, which callers add as the submitter's text. */
export function jobRecord(row: JobRow, queueUrl: string) {
  return {
    job_id: row.job_id,
    api_name: row.api_name,
    api_id: row.api_id,
    workers: row.workers,
    queue_url: queueUrl,
    ...(row.has_older_names === 1 ? { sqs_url: queueUrl } : {}),
    ...(row.timeout_s === null ? {} : { timeout: row.timeout_s }),
    ...(row.dead_letter_arn === null
      ? {}
      : {
          queue_dead_letter_queue: { arn: row.dead_letter_arn, max_receive_count: row.max_receive_count },
        }),
    ...(row.isolates === 1 ? { on_failure: "isolate" as const } : {}),
    ...(row.priority === 0 ? {} : { priority: row.priority }),
    created_time: row.created_time,
  };
}

/** The workers of a job in progress: their counts, and what they wait for. */
export interface LiveWorkers {
  counts: WorkerCounts;
  waiting: string | undefined;
}

/** The status without `config`. */
export function jobStatus(row: JobRow, queueUrl: string, live: LiveWorkers | undefined): JobStatusRecord {
  const unsettled = (row.total_batch_count ?? row.enqueued_batches) - row.succeeded - row.failed_batches;
  const reason = reasonOf(row);
  const waiting = row.paused === null ? live?.waiting : pausedBecause(row);
  return {
    ...jobRecord(row, queueUrl),
    status: row.status,
    // An ended job has no queue. Batches that were never settled come back with `resume`.
    batches_in_queue: row.end_time === null ? Math.max(0, unsettled) : 0,
    batch_metrics: {
      succeeded: row.succeeded,
      failed: row.failed_attempts,
      ...(row.succeeded === 0 ? {} : { avg_time_per_batch: row.success_us / 1e6 / row.succeeded }),
    },
    ...(row.total_batch_count === null ? {} : { total_batch_count: row.total_batch_count }),
    ...(row.status === "status_running" && live !== undefined ? { worker_counts: live.counts } : {}),
    ...(row.start_time === null ? {} : { start_time: row.start_time }),
    ...(row.end_time === null ? {} : { end_time: row.end_time }),
    ...(row.round <= 1 || row.round_started_time === null
      ? {}
      : { round: row.round, round_time: row.round_started_time }),
    ...(row.end_time === null && row.queued_time !== null ? { queued_time: row.queued_time } : {}),
    ...(row.end_time === null && row.paused_time !== null ? { paused_time: row.paused_time } : {}),
    ...(row.end_time === null && waiting !== undefined ? { waiting } : {}),
    ...(row.end_time === null || reason === undefined
      ? {}
      : { reason: { ...reason, message: hideInText(reason.message) } }),
  };
}
