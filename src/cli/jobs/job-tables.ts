/** Shows jobs as text, as Cortex did. */
import { wallMs } from "../../base/clock.ts";
import { parseExact, prettyJson, stringifyExact } from "../../base/json/exact.ts";
import { memberText } from "../../base/json/spans.ts";
import type { JobOutputProgress, JobStatus, JobStatusRecord } from "../../contracts/jobs.ts";
import { SecretNames } from "../../contracts/secrets.ts";
import { age, dateTime, size, table } from "../terminal/table.ts";

/** The response to a request for one job. */
export interface ShownJob {
  job_status: JobStatusRecord;
  endpoint: string;
}

/** The names of statuses in tables, as in Cortex. */
export const STATUS_TEXT: Readonly<Record<JobStatus, string>> = {
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

/** The fields of the submission, named as in the contract's record. */
const CONFIGURATION = [
  ...["job_id", "api_name", "workers", "config", "api_id", "queue_url"],
  ...["timeout", "queue_dead_letter_queue", "created_time"],
];

/** One line per job. `withApi`: the jobs are of several APIs. */
export function jobsTable(jobs: readonly JobStatusRecord[], withApi: boolean): string {
  const head = ["job id", "status", "progress", "failed*", "start time", "duration"];
  if (!withApi) return table(head, jobs.map(jobCells));
  return table(
    ["api", ...head],
    jobs.map((job) => [job.api_name, ...jobCells(job)]),
  );
}

function jobCells(job: JobStatusRecord): string[] {
  const { job_id, status, batch_metrics, total_batch_count, start_time } = job;
  const progress = `${batch_metrics.succeeded}/${total_batch_count ?? "-"}`;
  const failed = String(batch_metrics.failed);
  return [job_id, STATUS_TEXT[status], progress, failed, dateTime(start_time), duration(job)];
}

/** How long its last round took: nothing ran between two rounds. */
function duration({ created_time, round_time = created_time, end_time }: JobStatusRecord): string {
  return age((end_time === undefined ? wallMs() : Date.parse(end_time)) - Date.parse(round_time));
}

/** All details of one job. `text` is the same response, with numbers of the configuration as they were sent. */
export function jobDetails({ job_status: job, endpoint }: ShownJob, text: string): string {
  const sections = [
    summary(job),
    times(job),
    `batch stats\n${batchTable(job)}`,
    workerStats(job),
    ...(job.output === undefined ? [] : [outputText(job.output)]),
    `job endpoint: ${endpoint}`,
    `job configuration\n${prettyJson(configurationText(memberText(text, "job_status")))}`,
  ];
  return `${sections.join("\n\n")}\n`;
}

function summary({ job_id, status, waiting, reason }: JobStatusRecord): string {
  return [
    `job id: ${job_id}`,
    `status: ${STATUS_TEXT[status]}`,
    ...(waiting === undefined ? [] : [`waiting: ${waiting}`]),
    ...(reason === undefined ? [] : [`reason: ${reason.message}`]),
    ...(reason?.hint === undefined ? [] : [`hint: ${reason.hint}`]),
  ].join("\n");
}

function times(job: JobStatusRecord): string {
  const { start_time, end_time, queued_time } = job;
  return [
    ...(queued_time === undefined ? [] : [`queued since: ${dateTime(queued_time)}`]),
    `start time: ${dateTime(start_time)}`,
    `end time: ${dateTime(end_time)}`,
    `${job.round === undefined ? "duration" : `duration of round ${job.round}`}: ${duration(job)}`,
  ].join("\n");
}

function batchTable({ batch_metrics, total_batch_count }: JobStatusRecord): string {
  const { succeeded, failed, avg_time_per_batch: mean } = batch_metrics;
  const average = mean === undefined ? "-" : `${Number((mean * 1000).toPrecision(6))} ms`;
  return table(
    ["total", "succeeded", "failed", "avg time per batch"],
    [[String(total_batch_count ?? "-"), String(succeeded), String(failed), average]],
  );
}

function workerStats({ status, workers, worker_counts: counts }: JobStatusRecord): string {
  if (counts === undefined)
    return status === "status_enqueuing"
      ? "still enqueuing, workers have not been allocated for this job yet"
      : "worker stats are not available because this job is not currently running";
  const { pending, initializing, stalled, running, failed, succeeded } = counts;
  const cells = [workers, pending, initializing, stalled, running, failed, succeeded].map(String);
  return `worker stats\n${table(
    ["requested", "pending*", "initializing*", "stalled*", "running", "failed*", "succeeded"],
    [cells],
  )}`;
}

function outputText({ path, batches, parts, rows, bytes, has_manifest }: JobOutputProgress): string {
  return `output: ${path}\n${table(
    ["batches", "rows", "parts", "size", "manifest"],
    [[...[batches, rows, parts].map(String), size(bytes), has_manifest ? "written" : "-"]],
  )}`;
}

function configurationText(jobStatus: string): string {
  const members = parseExact(jobStatus) as Record<string, unknown>;
  const shown = CONFIGURATION.filter((name) => Object.hasOwn(members, name));
  const record = Object.fromEntries(shown.map((name) => [name, members[name]]));
  return stringifyExact({ ...record, config: new SecretNames().hide(record.config) });
}
