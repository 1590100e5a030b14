/** The batches of a job, as its record has them. Pure. */
import type { JobStatusRecord } from "../../shapes.ts";

type Counted = Pick<
  JobStatusRecord,
  "status" | "end_time" | "batch_metrics" | "batches_in_queue" | "total_batch_count"
>;

/** Whether every batch succeeded or finally failed. Other ends leave batches that never ran. */
export function isSettled({ status }: Pick<Counted, "status">): boolean {
  return status === "status_succeeded" || status === "status_completed_with_failures";
}

/**
 * `failed` in a job's metrics counts attempts. What finally failed is what neither succeeded nor waits; of a job that
 * ended before all its batches were settled, nobody can tell from the record.
 */
export function countsOf(job: Counted): { succeeded: number; failed: number; total: number | null } {
  const { batch_metrics, batches_in_queue, total_batch_count: total = null, end_time } = job;
  const { succeeded } = batch_metrics;
  const isKnown = total !== null && (end_time === undefined || isSettled(job));
  return { succeeded, failed: isKnown ? Math.max(0, total - succeeded - batches_in_queue) : 0, total };
}
