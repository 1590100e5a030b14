/** `quern job get|list`: shows one job, or the newest jobs of an API or of all. */
import type { JobStatusRecord } from "../../contracts/jobs.ts";
import { type CliContext, EXIT } from "../server/context.ts";
import { jobDetails, jobsTable, type ShownJob } from "./job-tables.ts";

export async function getJob({ client, output, out }: CliContext, api: string, id: string): Promise<number> {
  const { value, text } = await client.json<ShownJob>(await client.jobPath(api, id));
  await out(output === "json" ? `${text}\n` : jobDetails(value, text));
  return EXIT.success;
}

export interface ListOptions {
  limit?: string;
  status?: string[];
  search?: string;
  createdAfter?: string;
  createdBefore?: string;
  cursor?: string;
}

interface ListedJobs {
  jobs: JobStatusRecord[];
  next_cursor: string | null;
  /** All that match; only in lists of all APIs. */
  count?: number;
}

/** The list of one API is open to keys for its jobs. All other lists need a key that reads everything. */
export async function listJobs(
  context: CliContext,
  api: string | undefined,
  options: ListOptions,
): Promise<number> {
  const { output, out, err } = context;
  const { value, text } = await readList(context, api, options);
  if (output === "json") await out(`${text}\n`);
  else await out(value.jobs.length === 0 ? "no submitted jobs\n" : listText(value, api));
  if (value.next_cursor !== null && options.limit !== undefined) err(`more: --cursor ${value.next_cursor}\n`);
  return EXIT.success;
}

async function readList({ client }: CliContext, api: string | undefined, options: ListOptions) {
  const { limit = "10", cursor, search, createdAfter, createdBefore } = options;
  const status = options.status?.map(statusOf);
  const isOfApi = [search, createdAfter, createdBefore].every((each) => each === undefined);
  if (api !== undefined && isOfApi && (status?.length ?? 0) <= 1)
    return client.json<ListedJobs>(await client.apiPath(api), { query: { limit, status, cursor } });
  const times = { created_after: createdAfter, created_before: createdBefore };
  return client.json<ListedJobs>("/-/jobs", { query: { api, limit, status, search, cursor, ...times } });
}

function listText({ jobs, count }: ListedJobs, api: string | undefined): string {
  const table = jobsTable(jobs, api === undefined);
  return count === undefined ? `${table}\n` : `${table}\n\n${jobs.length} of ${count} jobs\n`;
}

/** Users may omit the prefix. */
function statusOf(given: string): string {
  return given.startsWith("status_") ? given : `status_${given}`;
}
