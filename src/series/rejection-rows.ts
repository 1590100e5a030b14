/** The rows of requests that the gateway itself refused, by error code. Written with each gateway's report. */
import type { Statements } from "../database/database.ts";
import { minuteOf } from "./steps.ts";

const ADD = `INSERT INTO series_rejections (api_name, code, at_s, step_s, requests) VALUES (?, ?, ?, 60, ?)
  ON CONFLICT (api_name, code, at_s, step_s) DO UPDATE SET requests = series_rejections.requests + excluded.requests`;

/** Refused requests by error code. */
export type Rejections = Readonly<Record<string, number>>;

/** How many came since the last report; undefined if none did. */
export function rejectedSince(now: Rejections, before: Rejections): Rejections | undefined {
  const grown = Object.entries(now).map(([code, count]) => [code, count - (before[code] ?? 0)] as const);
  const some = grown.filter(([, count]) => count > 0);
  return some.length === 0 ? undefined : Object.fromEntries(some);
}

/** Adds to the rows of this minute, of the API (or '' for all) alone. */
export async function addRejections(
  tx: Statements,
  api: string,
  counts: Rejections,
  nowS: number,
): Promise<void> {
  for (const [code, count] of Object.entries(counts)) await tx.run(ADD, [api, code, minuteOf(nowS), count]);
}

/** Both together. */
export function joined(one: Rejections, other: Rejections): Rejections {
  const sums: Record<string, number> = { ...one };
  for (const [code, count] of Object.entries(other)) sums[code] = (sums[code] ?? 0) + count;
  return sums;
}
