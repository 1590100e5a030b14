/**
 * `quern job stop API --all|--status|--created-before`: the server counts the jobs, this asks, and exactly these are
 * stopped.
 */
import { type CliContext, CliError, EXIT } from "../server/context.ts";
import { actOn, select } from "../server/selections.ts";
import { confirm } from "../terminal/confirm.ts";

/** The statuses of jobs that have not ended. */
const UNFINISHED = ["status_enqueuing", "status_running"] as const;
/** A date, or RFC 3339. */
const TIME = /^\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d))?$/;
export interface StopFilter {
  all?: true;
  /** With or without its prefix. */
  status?: string;
  /** RFC 3339, or a date. */
  createdBefore?: string;
}

export async function stopJobs(context: CliContext, api: string, filter: StopFilter): Promise<number> {
  const [status, created_before] = [statusesOf(filter.status), timeOf(filter.createdBefore)];
  const selection = await select(context, { jobs: { api, status, created_before } });
  const { count } = selection;
  if (count > 0) await confirm(context, `stop ${count === 1 ? "1 job" : `${count} jobs`} of ${api}?`);
  const { changed: stopped, skipped_count: ended } = await actOn(context, selection, "stop");
  const late = ended === 0 ? "" : `; ${ended} had ended before`;
  if (context.output === "json") await context.out(`${JSON.stringify({ stopped, ended })}\n`);
  else await context.out(`${stopped} of ${count} jobs of ${api} stopped${late}\n`);
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

function timeOf(given: string | undefined): string | undefined {
  if (given === undefined || (TIME.test(given) && !Number.isNaN(Date.parse(given)))) return given;
  const form = "must be a time such as 2026-11-24 or 2026-11-24T08:00:00Z";
  throw new CliError(`--created-before ${form} (got "${given}")`, EXIT.usage);
}
