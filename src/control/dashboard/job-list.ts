/** `GET /-/jobs`: the jobs of all APIs that match a filter, newest first, and their number. */
import { type Context, Hono } from "hono";
import { isUlid } from "../../base/ids.ts";
import { quotedBeginning } from "../../base/printable.ts";
import type { JobFilter } from "../../batch/listing/job-filter.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { JOB_STATUSES, type JobStatus } from "../../contracts/jobs.ts";
import { LIST_ROWS_AT_ONCE } from "../../contracts/limits/responses.ts";
import { jsonChunks } from "../answers/long-json.ts";
import type { OpenStreams } from "../answers/open-streams.ts";
import { type StatusDeps, statusText } from "../jobs/job-answers.ts";
import { limitOf, searchOf } from "../requests/parameters.ts";
import type { ReadsInTurn } from "../requests/reads-in-turn.ts";

export interface JobListDeps extends StatusDeps {
  lists: OpenStreams;
  reads: ReadsInTurn;
  /** Each looks at the records of all jobs, which may take a second: other reads do not wait for one. */
  searches: ReadsInTurn;
}

export function jobListRoutes(deps: JobListDeps): Hono {
  const app = new Hono();
  app.get("/-/jobs", (c) => {
    const filter = filterOf(c);
    const before = c.req.query("cursor");
    if (before !== undefined && !isUlid(before))
      throw invalid(`cursor must be the next_cursor of the previous page (got ${quotedBeginning(before)})`);
    const page = { limit: limitOf(c), before };
    const turns = filter.search === undefined ? deps.reads : deps.searches;
    return turns.take(c, (pass) => jsonChunks(c, deps.lists, listText(c, deps, filter, page), pass));
  });
  return app;
}

/** Reads a few rows at a time, because reasons are long and a page has many. */
async function* listText(
  c: Context,
  deps: JobListDeps,
  filter: JobFilter,
  page: { limit: number; before: string | undefined },
): AsyncGenerator<string> {
  const { found } = deps.jobs;
  const { ids, hasMore, count } = await found.page(filter, page);
  let separator = "";
  yield '{"jobs":[';
  for (let at = 0; at < ids.length; at += LIST_ROWS_AT_ONCE) {
    const rows = await found.byIds(ids.slice(at, at + LIST_ROWS_AT_ONCE));
    if (rows.length === 0) continue;
    yield separator + rows.map((row) => statusText(c, deps, row)).join(",");
    separator = ",";
  }
  yield `],"next_cursor":${JSON.stringify(hasMore ? ids.at(-1) : null)},"count":${count}}`;
}

function filterOf(c: Context): JobFilter {
  return {
    api: c.req.query("api"),
    statuses: c.req.queries("status")?.map(statusNamed),
    search: searchOf(c),
    createdAfterMs: timeOf(c, "created_after"),
    createdBeforeMs: timeOf(c, "created_before"),
  };
}

function statusNamed(name: string): JobStatus {
  if ((JOB_STATUSES as readonly string[]).includes(name)) return name as JobStatus;
  throw invalid(`status must be one of ${JOB_STATUSES.join(", ")} (got ${quotedBeginning(name)})`);
}

function timeOf(c: Context, name: string): number | undefined {
  const text = c.req.query(name);
  return text === undefined ? undefined : timeNamed(name, text);
}

/** A date, or RFC 3339. */
const TIME = /^\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d(:\d\d(\.\d+)?)?([Zz]|[+-]\d\d:\d\d))?$/;

/** Milliseconds since the epoch. Throws `invalid_request`. */
export function timeNamed(name: string, text: string): number {
  const ms = TIME.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(ms)) return ms;
  throw invalid(
    `${name} must be a time such as 2026-11-24 or 2026-11-24T08:00:00Z (got ${quotedBeginning(text)})`,
  );
}

function invalid(message: string): ServiceError {
  return new ServiceError("invalid_request", message);
}
