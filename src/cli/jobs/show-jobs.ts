/** `quern job get|list`: shows one job, or the newest jobs of an API. */
import type { JobStatusRecord } from "../../contracts/jobs.ts";
import { type CliContext, EXIT } from "../server/context.ts";
import { jobDetails, jobsTable, type ShownJob } from "./job-tables.ts";

export async function getJob({ client, output, out }: CliContext, api: string, id: string): Promise<number> {
  const { value, text } = await client.json<ShownJob>(await client.jobPath(api, id));
  await out(output === "json" ? `${text}\n` : jobDetails(value, text));
  return EXIT.success;
}

export async function listJobs(
  { client, output, out, err }: CliContext,
  api: string,
  options: { limit?: string; status?: string; cursor?: string },
): Promise<number> {
  const { value, text } = await client.json<{ jobs: JobStatusRecord[]; next_cursor: string | null }>(
    await client.apiPath(api),
    { query: { limit: options.limit ?? "10", status: statusOf(options.status), cursor: options.cursor } },
  );
  if (output === "json") await out(`${text}\n`);
  else await out(value.jobs.length === 0 ? "no submitted jobs\n" : `${jobsTable(value.jobs)}\n`);
  if (value.next_cursor !== null && options.limit !== undefined) err(`more: --cursor ${value.next_cursor}\n`);
  return EXIT.success;
}

/** Users may omit the prefix. */
function statusOf(given: string | undefined): string | undefined {
  return given === undefined || given.startsWith("status_") ? given : `status_${given}`;
}
