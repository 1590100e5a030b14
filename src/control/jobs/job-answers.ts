/** Converts a job's row to the responses of the contract (docs/contract/jobs.md#job-record). */
import type { Context } from "hono";
import { stringifyExact, stringifyWithRaw } from "../../base/json/exact.ts";
import type { Jobs } from "../../batch/jobs.ts";
import type { JobRow } from "../../batch/records/job-rows.ts";
import { jobRecord, jobStatus } from "../../batch/records/read-job.ts";
import type { ShownConfig } from "../answers/shown-config.ts";
import { jsonText } from "../answers/stream-text.ts";
import { baseUrl, forwarded } from "../requests/forwarded.ts";

export interface JobAnswerDeps {
  jobs: Jobs;
  shown: ShownConfig;
  /** Parses the configuration of the API version that a job uses; undefined if it was removed. */
  specOf: (apiName: string, apiId: string) => Promise<(() => unknown) | undefined>;
}

export type StatusDeps = Pick<JobAnswerDeps, "jobs" | "shown">;

export function queueUrl(c: Context, row: Pick<JobRow, "job_id">): string {
  return `${baseUrl(c)}/-/queues/${row.job_id}`;
}

/** A job's address for the client that makes the request. */
export function jobAddress(c: Context, row: Pick<JobRow, "api_name" | "job_id">): string {
  return `${baseUrl(c)}${forwarded(c).endpoint ?? `/${row.api_name}`}/${row.job_id}`;
}

/** The response to a submission. */
export async function recordText(c: Context, jobs: Jobs, row: JobRow): Promise<string> {
  const config = await jobs.records.configText(row.job_id);
  return stringifyWithRaw(jobRecord(row, queueUrl(c, row)), { config });
}

/** The status for lists and events. It has no `config`, which never changes and may be large. */
export function statusText(c: Context, deps: StatusDeps, row: JobRow): string {
  return stringifyExact(statusOf(c, deps, row));
}

function statusOf(c: Context, { jobs, shown }: StatusDeps, row: JobRow) {
  return jobStatus(row, queueUrl(c, row), {
    counts: jobs.workerCounts(row.job_id),
    waiting: jobs.waiting(row.job_id, shown.mayNameOthers(c)),
  });
}

/** docs/contract/jobs.md#status-envelope */
export async function statusResponse(c: Context, deps: JobAnswerDeps, row: JobRow): Promise<Response> {
  const spec = await deps.specOf(row.api_name, row.api_id);
  const envelope = {
    api_spec: deps.shown.spec(c, row.api_id, spec),
    endpoint: jobAddress(c, row),
  };
  const sent = () => deps.jobs.records.configText(row.job_id);
  const config = await deps.shown.ofJob(c, row.job_id, sent);
  const output = await deps.jobs.results.progress(row);
  const job_status = stringifyWithRaw({ ...statusOf(c, deps, row), output }, { config });
  return jsonText(stringifyWithRaw(envelope, { job_status }));
}
