/** `quern job pause` and `unpause`: one job, or all that are paused. */

import { change } from "../server/change.ts";
import { type CliContext, CliError, EXIT } from "../server/context.ts";
import type { ShownJob } from "./job-tables.ts";

export async function pauseJob(context: CliContext, api: string, job: string): Promise<number> {
  return post(context, api, job, "pause");
}

/** One job, or all if `all`. */
export async function unpauseJobs(
  context: CliContext,
  api: string | undefined,
  job: string | undefined,
  all = false,
): Promise<number> {
  if (all === (job !== undefined)) throw new CliError("name an API and a job, or give --all", EXIT.usage);
  if (all) return change(context, "/-/jobs/unpause");
  return post(context, api!, job!, "unpause");
}

async function post(
  { client, output, out }: CliContext,
  api: string,
  job: string,
  verb: "pause" | "unpause",
): Promise<number> {
  const { text } = await client.json<ShownJob>(`${await client.jobPath(api, job)}/${verb}`, {
    method: "POST",
  });
  const done = verb === "pause" ? `paused job ${job}: no new batch begins` : `continued job ${job}`;
  await out(output === "json" ? `${text}\n` : `${done}\n`);
  return EXIT.success;
}
