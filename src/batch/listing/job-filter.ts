/** Which jobs a list or a selection has, as conditions of SQL. Pure. */
import { firstUlidOf } from "../../base/ids.ts";
import { JOB_STATUSES, type JobStatus } from "../../contracts/jobs.ts";
import type { SqlValue } from "../../database/database.ts";

export interface JobFilter {
  api?: string | undefined;
  /** One of these; none given means any. */
  statuses?: readonly JobStatus[] | undefined;
  /** The start of a job's id, or a part of its API's name, in any case. */
  search?: string | undefined;
  /** Submitted at this time or later: milliseconds since the epoch. */
  createdAfterMs?: number | undefined;
  /** Submitted before this time. */
  createdBeforeMs?: number | undefined;
}

export interface Condition {
  sql: string;
  values: readonly SqlValue[];
}

/** Greater than every id. */
export const AFTER_ALL = "~";

/**
 * The filter without its search: ranges of jobs, each in one run of an index in the order of ids. No job is in two of
 * them, unless its status changes meanwhile.
 */
export function rangesOf({ api, statuses }: JobFilter): Condition[] {
  const ofApi = { sql: "api_name = ?", values: api === undefined ? [] : [api] };
  if (api !== undefined && statuses === undefined) return [ofApi];
  return [...new Set(statuses ?? JOB_STATUSES)].map((status) =>
    api === undefined
      ? { sql: "status = ?", values: [status] }
      : { sql: "api_name = ? AND status = ?", values: [api, status] },
  );
}

/** The first id that the filter permits, and the first one after the last: ids have the times of submissions. */
export function idBounds({ createdAfterMs, createdBeforeMs }: JobFilter): { from: string; before: string } {
  return {
    from: createdAfterMs === undefined ? "" : firstUlidOf(createdAfterMs),
    before: createdBeforeMs === undefined ? AFTER_ALL : firstUlidOf(createdBeforeMs),
  };
}

/** The search alone; undefined if there is none. */
export function searchCondition({ search }: JobFilter): Condition | undefined {
  if (search === undefined || search === "") return undefined;
  const text = search.toLowerCase();
  const part = `%${text.replace(/[%_!]/g, "!$&")}%`;
  return {
    sql: "(lower(api_name) LIKE ? ESCAPE '!' OR (job_id >= ? AND job_id < ?))",
    values: [part, text, `${text}${AFTER_ALL}`],
  };
}
