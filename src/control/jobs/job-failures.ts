/**
 * The failed batches of a job: in pages, counted by their errors, or all of them as JSON lines
 * (docs/contract/jobs.md#failures).
 */
import type { Context } from "hono";
import { quotedBeginning } from "../../base/printable.ts";
import type { Failure, FailureCursor, FailuresAsked } from "../../batch/end/failures.ts";
import type { JobRecords } from "../../batch/job-records.ts";
import type { Jobs } from "../../batch/jobs.ts";
import type { JobRow } from "../../batch/records/job-rows.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { LIST_LIMIT_DEFAULT } from "../../contracts/limits/responses.ts";
import { jsonChunks } from "../answers/long-json.ts";
import type { OpenStreams } from "../answers/open-streams.ts";
import { limitOf } from "../requests/parameters.ts";
import { type ReadsInTurn, STORE_TURN_MAX_MS } from "../requests/reads-in-turn.ts";

export interface FailuresDeps {
  jobs: Jobs;
  lists: OpenStreams;
  reads: ReadsInTurn;
}

export async function failuresResponse(
  c: Context,
  { jobs, lists, reads }: FailuresDeps,
  job: JobRow,
): Promise<Response> {
  const group = c.req.query("group_by");
  const limit = limitOf(c);
  const after = cursorOf(c);
  const like = likeOf(c);
  if (group === "error")
    return reads.take(
      c,
      (pass) => jsonChunks(c, lists, groupsAsJson(jobs.records, job), pass),
      STORE_TURN_MAX_MS,
    );
  if (group !== undefined)
    throw new ServiceError("invalid_request", `group_by can be "error" only (got ${quotedBeginning(group)})`);
  if ((c.req.header("accept") ?? "").includes("application/x-ndjson"))
    return lists.answer(c, allAsLines(jobs.records, job, after, like), "application/x-ndjson");
  const page = () => pageAsJson(jobs.records, job, { after, limit, like });
  // The items of failures may be in a store.
  return reads.take(c, (pass) => jsonChunks(c, lists, page(), pass), STORE_TURN_MAX_MS);
}

/** `7` is after batch 7, `7.12` after its item 12. */
function cursorOf(c: Context): FailureCursor {
  const text = c.req.query("cursor");
  if (text === undefined) return { batch: -1 };
  const [, batch, item] = /^(\d{1,15})(?:\.(\d{1,9}))?$/.exec(text) ?? [];
  if (batch !== undefined)
    return { batch: Number(batch), item: item === undefined ? undefined : Number(item) };
  throw new ServiceError(
    "invalid_request",
    `cursor must be the next_cursor of the previous page (got ${quotedBeginning(text)})`,
  );
}

/** The index of the batch whose error the others must have. */
function likeOf(c: Context): number | undefined {
  const text = c.req.query("like");
  if (text === undefined) return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new ServiceError(
    "invalid_request",
    `like must be the index of a batch (got ${quotedBeginning(text)})`,
  );
}

/** Streamed, because the payloads of a page may be many megabytes. */
async function* pageAsJson(records: JobRecords, job: JobRow, asked: FailuresAsked): AsyncGenerator<string> {
  const page = await records.failures(job, asked);
  let separator = '{"failures":[';
  for await (const failure of page.failures) {
    yield separator + failureText(failure);
    separator = ",";
  }
  const { nextCursor } = page;
  const next = nextCursor === null ? "null" : `"${cursorText(nextCursor)}"`;
  yield `${separator === "," ? "" : separator}],"next_cursor":${next}}`;
}

function cursorText({ batch, item }: FailureCursor): string {
  return item === undefined ? String(batch) : `${batch}.${item}`;
}

async function* allAsLines(
  records: JobRecords,
  job: JobRow,
  from: FailureCursor,
  like: number | undefined,
): AsyncGenerator<string> {
  for (let after: FailureCursor | null = from; after !== null; ) {
    const page = await records.failures(job, { after, limit: LIST_LIMIT_DEFAULT, like });
    for await (const failure of page.failures) yield `${failureText(failure)}\n`;
    after = page.nextCursor;
  }
}

async function* groupsAsJson(records: JobRecords, job: JobRow): AsyncGenerator<string> {
  let separator = '{"groups":[';
  for await (const group of records.failureGroups(job)) {
    yield separator + JSON.stringify(group);
    separator = ",";
  }
  yield separator === "," ? "]}" : `${separator}]}`;
}

function failureText({ payloadText, ...failure }: Failure): string {
  return `${JSON.stringify(failure).slice(0, -1)},"payload":${payloadText ?? "null"}}`;
}
