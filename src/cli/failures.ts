/** `quern job failures`: the batches that finally failed, with their errors and items. */
import { type CliContext, EXIT } from "./context.ts";
import { table } from "./table.ts";

interface Failure {
  batch_id: string;
  batch_index: number;
  receive_count: number;
  error: { type: string; message: string; traceback: string };
  payload: unknown;
  payload_error?: string;
}

const WIDTH = 60;

export async function jobFailures(
  context: CliContext,
  api: string,
  jobId: string,
  options: { limit: string; cursor?: string },
): Promise<number> {
  const { client, output, out, err } = context;
  const { value, text } = await client.json<{ failures: Failure[]; next_cursor: string | null }>(
    `/${encodeURIComponent(api)}/${encodeURIComponent(jobId)}/failures`,
    { query: { limit: options.limit, cursor: options.cursor } },
  );
  if (output === "json") {
    await out(`${text}\n`);
    return EXIT.success;
  }
  if (value.failures.length === 0) await out("no failed batches\n");
  else {
    const rows = value.failures.map((failure) => [
      String(failure.batch_index),
      String(failure.receive_count),
      short(`${failure.error.type}: ${failure.error.message}`),
      short(failure.payload_error ?? JSON.stringify(failure.payload)),
    ]);
    await out(`${table(["batch", "attempts", "error", "items"], rows)}\n`);
    await out(`\nthe last one's traceback:\n${value.failures.at(-1)!.error.traceback.trimEnd()}\n`);
  }
  if (value.next_cursor !== null) err(`more: --cursor ${value.next_cursor}; all of each: -o json\n`);
  return EXIT.success;
}

/** One line of a table. */
function short(text: string): string {
  const line = text.replace(/\s+/g, " ");
  return line.length <= WIDTH ? line : `${line.slice(0, WIDTH - 1)}…`;
}
