/** The commands `quern job …`. */
import { readFileSync } from "node:fs";
import { wallMs } from "../base/clock.ts";
import { memberText, parseExact, prettyJson, stringifyExact } from "../base/json-text.ts";
import type { JobStatus, JobStatusRecord } from "../contracts/jobs.ts";
import { SecretNames } from "../contracts/secrets.ts";
import { type CliContext, CliError, EXIT } from "./server/context.ts";
import { printStream } from "./terminal/print-stream.ts";
import { ProgressBar } from "./terminal/progress.ts";
import { age, dateTime, table } from "./terminal/table.ts";

const POLL_MS = 150;

type StatusRecord = JobStatusRecord & { config: unknown };
interface Envelope {
  job_status: StatusRecord;
  endpoint: string;
}

/** The names of statuses in tables, as in Cortex. */
const STATUS_TEXT: Record<JobStatus, string> = {
  status_unknown: "unknown",
  status_enqueuing: "enqueuing",
  status_running: "running",
  status_enqueue_failed: "failed while enqueuing",
  status_completed_with_failures: "completed with failures",
  status_succeeded: "succeeded",
  status_unexpected_error: "unexpected error",
  status_worker_error: "worker error",
  status_worker_oom: "out of memory",
  status_timed_out: "timed out",
  status_stopped: "stopped",
};

const EXIT_BY_STATUS: Partial<Record<JobStatus, number>> = {
  status_succeeded: EXIT.success,
  status_completed_with_failures: EXIT.jobCompletedWithFailures,
  status_stopped: EXIT.jobStopped,
  status_timed_out: EXIT.jobTimedOut,
};

export async function submitJob(
  context: CliContext,
  api: string,
  file: string,
  options: { wait?: boolean; dryRun?: boolean; idempotencyKey?: string },
): Promise<number> {
  const body = readFileSync(file === "-" ? 0 : file);
  if (options.dryRun === true) return previewJob(context, api, body);
  const { value, text } = await context.client.json<{ job_id: string }>(await context.client.apiPath(api), {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(options.idempotencyKey === undefined ? {} : { "idempotency-key": options.idempotencyKey }),
    },
    body,
  });
  if (options.wait === true) {
    context.err(`submitted job ${value.job_id}\n`);
    return waitForJob(context, api, value.job_id, {});
  }
  await context.out(context.output === "json" ? `${text}\n` : `${value.job_id}\n`);
  return EXIT.success;
}

/** Continues all jobs that are paused. */
export async function unpauseJobs(context: CliContext): Promise<number> {
  const { value, text } = await context.client.json<{ message: string }>("/-/jobs/unpause", {
    method: "POST",
  });
  await context.out(`${context.output === "json" ? text : value.message}\n`);
  return EXIT.success;
}

/** Starts a new round: a redrive or a resume. */
export async function newRound(
  context: CliContext,
  api: string,
  jobId: string,
  verb: "redrive" | "resume",
  options: { error?: string; wait?: boolean },
): Promise<number> {
  const body =
    options.error === undefined ? undefined : Buffer.from(JSON.stringify({ error: options.error }));
  const { value, text } = await context.client.json<Envelope>(
    `${await context.client.apiPath(api)}/${encodeURIComponent(jobId)}/${verb}`,
    { method: "POST", ...(body === undefined ? {} : { body }) },
  );
  const left = value.job_status.batches_in_queue;
  if (options.wait === true) {
    context.err(`${verb === "redrive" ? "redriving" : "resuming"} job ${jobId}: ${left} batches\n`);
    return waitForJob(context, api, jobId, {});
  }
  await context.out(
    context.output === "json"
      ? `${text}\n`
      : `${verb === "redrive" ? "redriving" : "resuming"} job ${jobId}: ${left} batches\n`,
  );
  return EXIT.success;
}

async function previewJob(context: CliContext, api: string, body: Uint8Array): Promise<number> {
  const accept = context.output === "json" ? "application/json" : "text/plain";
  await printStream(context, await context.client.apiPath(api), {
    method: "POST",
    query: { dryRun: "true" },
    headers: { "content-type": "application/json", accept },
    body,
  });
  return EXIT.success;
}

export async function listJobs(
  context: CliContext,
  api: string,
  options: { limit?: string; status?: string; cursor?: string },
): Promise<number> {
  const { value, text } = await context.client.json<{ jobs: JobStatusRecord[]; next_cursor: string | null }>(
    await context.client.apiPath(api),
    { query: { limit: options.limit ?? "10", status: statusOf(options.status), cursor: options.cursor } },
  );
  if (context.output === "json") await context.out(`${text}\n`);
  else if (value.jobs.length === 0) await context.out("no submitted jobs\n");
  else
    await context.out(
      `${table(["job id", "status", "progress", "failed*", "start time", "duration"], value.jobs.map(jobCells))}\n`,
    );
  if (value.next_cursor !== null && options.limit !== undefined)
    context.err(`more: --cursor ${value.next_cursor}\n`);
  return EXIT.success;
}

/** Users may omit the prefix. */
function statusOf(given: string | undefined): string | undefined {
  return given === undefined || given.startsWith("status_") ? given : `status_${given}`;
}

function jobCells(job: JobStatusRecord): string[] {
  const progress = `${job.batch_metrics.succeeded}/${job.total_batch_count ?? "-"}`;
  return [
    job.job_id,
    STATUS_TEXT[job.status],
    progress,
    String(job.batch_metrics.failed),
    dateTime(job.start_time),
    duration(job),
  ];
}

function duration(job: JobStatusRecord): string {
  return age(
    (job.end_time === undefined ? wallMs() : Date.parse(job.end_time)) - Date.parse(job.created_time),
  );
}

export async function getJob(context: CliContext, api: string, jobId: string): Promise<number> {
  const { value, text } = await context.client.json<Envelope>(
    `${await context.client.apiPath(api)}/${encodeURIComponent(jobId)}`,
  );
  await context.out(context.output === "json" ? `${text}\n` : describeJob(value, text));
  return EXIT.success;
}

/** `text` is the same response, with numbers of the configuration as they were sent. */
function describeJob({ job_status: job, endpoint }: Envelope, text: string): string {
  const { batch_metrics: metrics, worker_counts: workers } = job;
  const mean =
    metrics.avg_time_per_batch === undefined
      ? "-"
      : `${Number((metrics.avg_time_per_batch * 1000).toPrecision(6))} ms`;
  const workerLines =
    workers !== undefined
      ? [
          "worker stats",
          table(
            ["requested", "pending*", "initializing*", "stalled*", "running", "failed*", "succeeded"],
            [workerCells(job, workers)],
          ),
        ]
      : [
          job.status === "status_enqueuing"
            ? "still enqueuing, workers have not been allocated for this job yet"
            : "worker stats are not available because this job is not currently running",
        ];
  const reason =
    job.reason === undefined
      ? []
      : [
          `reason: ${job.reason.message}`,
          ...(job.reason.hint === undefined ? [] : [`hint: ${job.reason.hint}`]),
        ];
  return `${[
    `job id: ${job.job_id}`,
    `status: ${STATUS_TEXT[job.status]}`,
    ...(job.waiting === undefined ? [] : [`waiting: ${job.waiting}`]),
    ...reason,
    "",
    `start time: ${dateTime(job.start_time)}`,
    `end time: ${dateTime(job.end_time)}`,
    `duration: ${duration(job)}`,
    "",
    "batch stats",
    table(
      ["total", "succeeded", "failed", "avg time per batch"],
      [[String(job.total_batch_count ?? "-"), String(metrics.succeeded), String(metrics.failed), mean]],
    ),
    "",
    ...workerLines,
    "",
    `job endpoint: ${endpoint}`,
    "",
    "job configuration",
    prettyJson(configurationText(memberText(text, "job_status"))),
  ].join("\n")}\n`;
}

/** The fields of the submission, named as in the contract's record. */
const CONFIGURATION = [
  ...["job_id", "api_name", "workers", "config", "api_id", "queue_url"],
  ...["timeout", "queue_dead_letter_queue", "created_time"],
];

function configurationText(jobStatus: string): string {
  const members = parseExact(jobStatus) as Record<string, unknown>;
  const shown = CONFIGURATION.filter((name) => Object.hasOwn(members, name));
  const record = Object.fromEntries(shown.map((name) => [name, members[name]]));
  return stringifyExact({ ...record, config: new SecretNames().hide(record.config) });
}

function workerCells(job: StatusRecord, workers: NonNullable<StatusRecord["worker_counts"]>): string[] {
  return [
    job.workers,
    workers.pending,
    workers.initializing,
    workers.stalled,
    workers.running,
    workers.failed,
    workers.succeeded,
  ].map(String);
}

/** Waits for the end of a job, with a bar on a terminal. The exit code depends on the final status. */
export async function waitForJob(
  context: CliContext,
  api: string,
  jobId: string,
  options: { timeout?: string },
): Promise<number> {
  const bar = new ProgressBar(context);
  const deadline =
    options.timeout === undefined
      ? Number.POSITIVE_INFINITY
      : performance.now() + Number(options.timeout) * 1000;
  for (;;) {
    const { value, text } = await context.client.json<Envelope>(
      `${await context.client.apiPath(api)}/${encodeURIComponent(jobId)}`,
    );
    const { status, batch_metrics, batches_in_queue, total_batch_count, end_time } = value.job_status;
    const settled = total_batch_count === undefined ? 0 : total_batch_count - batches_in_queue;
    bar.update(STATUS_TEXT[status], settled, total_batch_count, batch_metrics.failed);
    if (end_time !== undefined) {
      bar.end();
      await context.out(context.output === "json" ? `${text}\n` : describeJob(value, text));
      return EXIT_BY_STATUS[status] ?? EXIT.jobFailed;
    }
    if (performance.now() > deadline) {
      bar.end();
      throw new CliError(
        `job ${jobId} is still ${STATUS_TEXT[status]} after ${options.timeout} s; it goes on`,
        EXIT.timeout,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
