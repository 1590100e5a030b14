/** `quern job failures`: shows the batches that finally failed, with their errors and items. */
import { type CliContext, EXIT } from "../server/context.ts";
import { exportStream } from "../terminal/print-stream.ts";
import { cell, table } from "../terminal/table.ts";

interface Failure {
  batch_id: string;
  batch_index: number;
  item_index?: number;
  item_count?: number;
  source?: { path: string; line?: number };
  receive_count: number;
  error: { type: string; message: string; traceback: string };
  payload: unknown;
  payload_error?: string;
  letter_error?: string;
}

interface Group {
  batches: number;
  first_batch_index: number;
  common_message: string;
  error: { type: string; message: string; traceback: string };
}

interface FailuresOptions {
  limit: string;
  cursor?: string;
  byError?: boolean;
  like?: string;
  export?: string;
}

/** Lists the failed batches, counts them by error, or exports all of them to a file as JSON lines. */
export async function jobFailures(
  context: CliContext,
  api: string,
  jobId: string,
  options: FailuresOptions,
): Promise<number> {
  const path = `${await context.client.jobPath(api, jobId)}/failures`;
  if (options.export !== undefined) {
    await exportStream(context, path, options.export, {
      query: { like: options.like },
      headers: { accept: "application/x-ndjson" },
    });
    return EXIT.success;
  }
  if (options.byError === true) return failuresByError(context, path);
  return listFailures(context, path, options);
}

async function listFailures(
  { client, output, out, err }: CliContext,
  path: string,
  { limit, cursor, like }: FailuresOptions,
): Promise<number> {
  const { value, text } = await client.json<{ failures: Failure[]; next_cursor: string | null }>(path, {
    query: { limit, cursor, like },
  });
  if (output === "json") {
    await out(`${text}\n`);
    return EXIT.success;
  }
  if (value.failures.length === 0) await out("no failed batches\n");
  else {
    const rows = value.failures.map((failure) => [
      cell(placeOf(failure)),
      String(failure.receive_count),
      cell(`${failure.error.type}: ${failure.error.message}`),
      cell(failure.payload_error ?? JSON.stringify(failure.payload)),
    ]);
    await out(`${table(["batch", "attempts", "error", "items"], rows)}\n`);
    const traceback = value.failures.at(-1)!.error.traceback.trimEnd();
    if (traceback !== "") await out(`\ntraceback of the last one:\n${traceback}\n`);
    const refused = value.failures.find(({ letter_error }) => letter_error !== undefined);
    if (refused !== undefined) await out(`\nnot in the dead letter queue: ${refused.letter_error}\n`);
  }
  if (value.next_cursor !== null)
    err(`more: --cursor ${value.next_cursor}; counts by error: --by-error; all: --export FILE\n`);
  return EXIT.success;
}

/** `7`, or for an item `7.12 in.jsonl:513`. */
function placeOf({ batch_index, item_index, item_count = 1, source }: Failure): string {
  if (item_index === undefined) return String(batch_index);
  const items = item_count === 1 ? `${item_index}` : `${item_index}-${item_index + item_count - 1}`;
  const line = source?.line === undefined ? "" : `:${source.line}`;
  return `${batch_index}.${items}${source === undefined ? "" : ` ${source.path}${line}`}`;
}

async function failuresByError({ client, output, out }: CliContext, path: string): Promise<number> {
  const { value, text } = await client.json<{ groups: Group[] }>(path, { query: { group_by: "error" } });
  if (output === "json") await out(`${text}\n`);
  else if (value.groups.length === 0) await out("no failed batches\n");
  else {
    const rows = value.groups.map(({ batches, first_batch_index, common_message, error }) => [
      String(batches),
      String(first_batch_index),
      cell(common_message === "" ? error.type : `${error.type}: ${common_message}`),
    ]);
    await out(`${table(["batches", "first", "error"], rows)}\n`);
  }
  return EXIT.success;
}
