/** The requests of all APIs in the last minutes, for what a controller keeps in memory. */
import type { Statements } from "../database/database.ts";
import { DURATION_COLUMNS } from "./buckets.ts";
import { minuteOf } from "./steps.ts";

export interface NewestMinute {
  api: string;
  /** Unix seconds: the start of the minute. */
  startS: number;
  requests: number;
  errors: number;
  /** By the bounds of DURATION_BOUNDS_S, and one more for longer ones. */
  buckets: readonly number[];
}

/** In order, of this minute and those before it. */
export async function newestMinutes(db: Statements, minutes: number, nowS: number): Promise<NewestMinute[]> {
  const rows = await db.all<Record<string, number> & { api_name: string }>(
    `SELECT api_name, at_s, requests, errors, ${DURATION_COLUMNS.join(", ")} FROM series_requests
     WHERE step_s = 60 AND at_s > ? AND api_name <> '' ORDER BY at_s`,
    [minuteOf(nowS) - minutes * 60],
  );
  return rows.map((row) => ({
    ...{ api: row.api_name, startS: row.at_s!, requests: row.requests!, errors: row.errors! },
    buckets: DURATION_COLUMNS.map((name) => row[name]!),
  }));
}
