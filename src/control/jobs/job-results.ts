/**
 * The predictions of a job that are committed, as JSON lines in the order of batches (docs/contract/output.md#results).
 */
import type { Context } from "hono";
import type { Jobs } from "../../batch/jobs.ts";
import type { JobRow } from "../../batch/records/job-rows.ts";
import { ServiceError } from "../../contracts/errors.ts";
import type { OpenStreams } from "../answers/open-streams.ts";
import { onlyLooks } from "../requests/audited.ts";
import { isTrue } from "../requests/parameters.ts";
import { rowsOf } from "./followed-rows.ts";

/** Throws `no_output`. */
export async function resultsResponse(
  c: Context,
  { jobs, streams, lists }: { jobs: Jobs; streams: OpenStreams; lists: OpenStreams },
  job: JobRow,
): Promise<Response> {
  const range = { first: batchOf(c, "cursor", 0), end: batchOf(c, "end", Number.MAX_SAFE_INTEGER) };
  const isFollowed = isTrue(c.req.query("follow"));
  await jobs.results.assertOutput(job);
  const open = isFollowed ? streams : lists;
  return open.answer(c, rowsOf(jobs, job, range, isFollowed), "application/x-ndjson");
}

/** A line for each part, then one for the whole. Throws `no_output`, and `wrong_state` without a manifest. */
export async function verifyResponse(
  c: Context,
  { jobs, lists }: { jobs: Jobs; lists: OpenStreams },
  job: JobRow,
): Promise<Response> {
  onlyLooks(c);
  const output = await jobs.results.written(job);
  return lists.answer(c, asLines(jobs.results.verify(output)), "application/x-ndjson");
}

async function* asLines(found: AsyncGenerator<object | undefined>): AsyncGenerator<string> {
  for await (const line of found) yield line === undefined ? "" : `${JSON.stringify(line)}\n`;
}

function batchOf(c: Context, name: "cursor" | "end", missing: number): number {
  const text = c.req.query(name);
  if (text === undefined) return missing;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new ServiceError("invalid_request", `${name} must be the index of a batch (got "${text}")`);
}
