/** The rows of requests: their number, their errors, how long they took and waited. Written with each gateway's report. */
import { bucketsSince, emptyTally, type Tally } from "../contracts/reports.ts";
import type { Statements } from "../database/database.ts";
import { DURATION_COLUMNS, WAIT_COLUMNS } from "./buckets.ts";
import { addRejections, joined, type Rejections, rejectedSince } from "./rejection-rows.ts";
import { minuteOf } from "./steps.ts";

export const REQUEST_COUNTS = ["requests", "errors", ...DURATION_COLUMNS, ...WAIT_COLUMNS];
const ADDED = REQUEST_COUNTS.map((name) => `${name} = series_requests.${name} + excluded.${name}`).join(", ");
const PLACES = REQUEST_COUNTS.map(() => "?").join(", ");
const ADD = `INSERT INTO series_requests (api_name, at_s, step_s, ${REQUEST_COUNTS.join(", ")})
  VALUES (?, ?, 60, ${PLACES}) ON CONFLICT (api_name, at_s, step_s) DO UPDATE SET ${ADDED}`;

/** An API's totals at a gateway now, and at its last report. */
export interface Grown {
  api: string;
  now: Tally;
  before: Tally | undefined;
}

/**
 * Adds what came since the last report to the rows of this minute: of each API, and of all together. In the transaction
 * that counts the report for `quern get`, so the two never differ. A deleted API gets no row.
 */
export async function addRequests(tx: Statements, grown: readonly Grown[], nowS: number): Promise<void> {
  const counts = grown.flatMap((one) => {
    const each = countsOf(one);
    const rejected = rejectedSince(one.now.rejected, one.before?.rejected ?? {});
    return each.some((count) => count > 0) || rejected !== undefined
      ? [{ api: one.api, each, rejected }]
      : [];
  });
  if (counts.length === 0) return;
  const rows = await tx.all<{ name: string }>("SELECT name FROM apis");
  const deployed = new Set(rows.map(({ name }) => name));
  const sums = REQUEST_COUNTS.map(() => 0);
  let allRejected: Rejections = {};
  for (const { api, each, rejected } of counts) {
    if (!deployed.has(api)) continue;
    for (const [at, count] of each.entries()) sums[at]! += count;
    await tx.run(ADD, [api, minuteOf(nowS), ...each]);
    if (rejected === undefined) continue;
    await addRejections(tx, api, rejected, nowS);
    allRejected = joined(allRejected, rejected);
  }
  if (sums.some((count) => count > 0)) await tx.run(ADD, ["", minuteOf(nowS), ...sums]);
  await addRejections(tx, "", allRejected, nowS);
}

/** In the order of the columns. */
function countsOf({ now, before = emptyTally() }: Grown): number[] {
  const answered = (status: string) =>
    Math.max(0, (now.answers[status] ?? 0) - (before.answers[status] ?? 0));
  return [
    answered("2xx") + answered("4xx") + answered("5xx"),
    answered("5xx"),
    ...bucketsSince(now.duration, before.duration),
    ...bucketsSince(now.wait, before.wait),
  ];
}
