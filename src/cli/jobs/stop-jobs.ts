/**
 * `quern job stop API --all|--status|--created-before`: counts the jobs, asks, and stops exactly these. It uses the same
 * requests as any client.
 */
import type { JobStatusRecord } from "../../contracts/jobs.ts";
import { LIST_LIMIT_MAX } from "../../contracts/limits/responses.ts";
import { type CliContext, CliError, EXIT } from "../server/context.ts";
import { confirm } from "../terminal/confirm.ts";
import { ProgressBar } from "../terminal/progress.ts";

/** The statuses of jobs that have not ended. */
const UNFINISHED = ["status_enqueuing", "status_running"] as const;
/** A date, or RFC 3339. */
const TIME = /^\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d))?$/;
/** Each waits for a commit and for the end of a batch in hand. */
const STOPPED_AT_ONCE = 8;

export interface StopFilter {
  all?: true;
  /** With or without its prefix. */
  status?: string;
  /** RFC 3339, or a date. */
  createdBefore?: string;
}

export async function stopJobs(context: CliContext, api: string, filter: StopFilter): Promise<number> {
  const ids = await matching(context, api, statusesOf(filter.status), timeOf(filter.createdBefore));
  if (ids.length > 0)
    await confirm(context, `stop ${ids.length === 1 ? "1 job" : `${ids.length} jobs`} of ${api}?`);
  const { stopped, ended } = await stopAll(context, api, ids);
  const late = ended === 0 ? "" : `; ${ended} had ended before`;
  if (context.output === "json") await context.out(`${JSON.stringify({ stopped, ended })}\n`);
  else await context.out(`${stopped} of ${ids.length} jobs of ${api} stopped${late}\n`);
  return EXIT.success;
}

function statusesOf(given: string | undefined): readonly string[] {
  if (given === undefined) return UNFINISHED;
  const status = UNFINISHED.find((each) => each === given || each === `status_${given}`);
  if (status !== undefined) return [status];
  throw new CliError(
    `--status must be enqueuing or running (got "${given}"): other jobs have ended`,
    EXIT.usage,
  );
}

function timeOf(given: string | undefined): number {
  if (given === undefined) return Number.POSITIVE_INFINITY;
  const ms = TIME.test(given) ? Date.parse(given) : Number.NaN;
  if (!Number.isNaN(ms)) return ms;
  const form = "must be a time such as 2026-11-24 or 2026-11-24T08:00:00Z";
  throw new CliError(`--created-before ${form} (got "${given}")`, EXIT.usage);
}

/** Newest first: while they are stopped, jobs that wait get no compute of those that have ended. */
async function matching(
  { client }: CliContext,
  api: string,
  statuses: readonly string[],
  beforeMs: number,
): Promise<string[]> {
  const path = await client.apiPath(api);
  // A job may begin to run while the lists are read.
  const ids = new Set<string>();
  for (const status of statuses) {
    for (let cursor: string | undefined; ; ) {
      const query = { status, cursor, limit: String(LIST_LIMIT_MAX) };
      const { value } = await client.json<{ jobs: JobStatusRecord[]; next_cursor: string | null }>(path, {
        query,
      });
      for (const { job_id, created_time } of value.jobs)
        if (Date.parse(created_time) < beforeMs) ids.add(job_id);
      if (value.next_cursor === null) break;
      cursor = value.next_cursor;
    }
  }
  return [...ids].sort().reverse();
}

async function stopAll(
  context: CliContext,
  api: string,
  ids: readonly string[],
): Promise<{ stopped: number; ended: number }> {
  const counts = { stopped: 0, ended: 0 };
  const bar = new ProgressBar(context);
  const left = ids.values();
  const stopSome = async () => {
    for (const id of left) {
      counts[(await stopOne(context, api, id)) ? "stopped" : "ended"]++;
      bar.update("stopping", counts.stopped + counts.ended, ids.length, 0);
    }
  };
  try {
    await Promise.all(Array.from({ length: STOPPED_AT_ONCE }, stopSome));
  } finally {
    if (ids.length > 0) bar.end();
  }
  return counts;
}

/** False if it had ended before. */
async function stopOne({ client }: CliContext, api: string, id: string): Promise<boolean> {
  try {
    await client.json(await client.jobPath(api, id), { method: "DELETE" });
    return true;
  } catch (error) {
    if (error instanceof CliError && error.code === "wrong_state") return false;
    throw error;
  }
}
