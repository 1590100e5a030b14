/** `quern job wait`: waits for the end of a job, with a bar on a terminal. The exit code depends on the final status. */
import { COMPLETE_STATUSES, type JobStatus } from "../../contracts/jobs.ts";
import { type CliContext, CliError, EXIT } from "../server/context.ts";
import { ProgressBar } from "../terminal/progress.ts";
import { jobDetails, type ShownJob, STATUS_TEXT } from "./job-tables.ts";

const POLL_MS = 150;

const EXIT_BY_STATUS: Partial<Record<JobStatus, number>> = {
  status_succeeded: EXIT.success,
  status_completed_with_failures: EXIT.jobCompletedWithFailures,
  status_stopped: EXIT.jobStopped,
  status_timed_out: EXIT.jobTimedOut,
};

/** `timeout` is in seconds. */
export async function waitForJob(
  context: CliContext,
  api: string,
  jobId: string,
  { timeout }: { timeout?: string },
): Promise<number> {
  const { client, output, out } = context;
  const bar = new ProgressBar(context);
  const deadline =
    timeout === undefined ? Number.POSITIVE_INFINITY : performance.now() + Number(timeout) * 1000;
  for (;;) {
    const { value, text } = await client.json<ShownJob>(await client.jobPath(api, jobId));
    const { status, end_time } = value.job_status;
    // Another end may leave batches that were never settled. They are not in the queue any more: the bar cannot tell.
    if (end_time === undefined || COMPLETE_STATUSES.has(status)) show(bar, value);
    if (end_time !== undefined) {
      bar.end();
      await out(output === "json" ? `${text}\n` : jobDetails(value, text));
      return EXIT_BY_STATUS[status] ?? EXIT.jobFailed;
    }
    if (performance.now() > deadline) {
      bar.end();
      const message = `job ${jobId} is still ${STATUS_TEXT[status]} after ${timeout} s; it continues`;
      throw new CliError(message, EXIT.timeout);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

function show(bar: ProgressBar, { job_status }: ShownJob): void {
  const { status, batch_metrics, batches_in_queue, total_batch_count: total } = job_status;
  const settled = total === undefined ? 0 : total - batches_in_queue;
  bar.update(STATUS_TEXT[status], settled, total, batch_metrics.failed);
}
