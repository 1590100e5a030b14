/** `quern queue get|messages|redrive|remove|purge`: shows dead letter queues, and changes their messages. */
import { type CliContext, CliError, EXIT } from "./server/context.ts";
import { actOn, select } from "./server/selections.ts";
import { confirm } from "./terminal/confirm.ts";
import { cell, since, table } from "./terminal/table.ts";

/** Reasons that are printed for messages that stay. */
const SKIPPED_PRINTED = 10;

interface Counts {
  name: string;
  messages: number;
  oldest_sent_time: string | null;
}

/** A job's own queue, which is named by the job's id. */
interface JobCounts {
  job_id: string;
  batches_in_queue: number;
  batch_metrics: { succeeded: number; failed: number };
  total_batch_count: number | null;
}

interface Message {
  message_id: string;
  body: string;
  attributes: Record<string, string>;
  sent_time: string;
}

/** Shows one queue, or a page of the queues that jobs name; by a job's id, the batches of this job. */
export async function getQueues(
  context: CliContext,
  name: string | undefined,
  page: { limit: string; cursor?: string },
): Promise<number> {
  if (name === undefined) return listQueues(context, page);
  const { client, output, out } = context;
  const { value, text } = await client.json<Counts | JobCounts>(`/-/queues/${encodeURIComponent(name)}`);
  if (output === "json") await out(`${text}\n`);
  else await out(`${"job_id" in value ? batchTable(value) : queueTable([value])}\n`);
  return EXIT.success;
}

async function listQueues(
  { client, output, out, err }: CliContext,
  { limit, cursor }: { limit: string; cursor?: string },
): Promise<number> {
  const { value, text } = await client.json<{ queues: Counts[]; next_cursor: string | null }>("/-/queues", {
    query: { limit, cursor },
  });
  if (output === "json") await out(`${text}\n`);
  else if (value.queues.length > 0) await out(`${queueTable(value.queues)}\n`);
  else await out(cursor === undefined ? "no dead letter queues: no job names one\n" : "no more queues\n");
  if (value.next_cursor !== null) err(`more: --cursor ${value.next_cursor}\n`);
  return EXIT.success;
}

function batchTable({ job_id, batches_in_queue, batch_metrics, total_batch_count }: JobCounts): string {
  const { succeeded, failed } = batch_metrics;
  const counts = [batches_in_queue, succeeded, failed, total_batch_count ?? "-"].map(String);
  return table(["job", "batches in queue", "succeeded", "failed attempts", "total"], [[job_id, ...counts]]);
}

function queueTable(queues: readonly Counts[]): string {
  const rows = queues.map(({ name, messages, oldest_sent_time }) => [
    name,
    String(messages),
    oldest_sent_time === null ? "-" : since(oldest_sent_time),
  ]);
  return table(["queue", "messages", "oldest"], rows);
}

export async function queueMessages(
  { client, output, out, err }: CliContext,
  name: string,
  options: { limit: string; cursor?: string; search?: string },
): Promise<number> {
  const { value, text } = await client.json<{ messages: Message[]; next_cursor: string | null }>(
    `/-/queues/${encodeURIComponent(name)}/messages`,
    { query: { limit: options.limit, cursor: options.cursor, search: options.search } },
  );
  if (output === "json") await out(`${text}\n`);
  else if (value.messages.length === 0) await out("no messages\n");
  else {
    const rows = value.messages.map(({ attributes, body, sent_time }) => [
      attributes.api_name ?? "",
      attributes.batch_id ?? "",
      attributes.receive_count ?? "",
      errorOf(attributes.error),
      cell(body),
      since(sent_time),
    ]);
    await out(`${table(["api", "batch id", "attempts", "error", "items", "age"], rows)}\n`);
  }
  if (value.next_cursor !== null) err(`more: --cursor ${value.next_cursor}; full messages: -o json\n`);
  return EXIT.success;
}

/** Redrives or removes the messages of a queue that have a text, or all of them. */
export async function changeMessages(
  context: CliContext,
  queue: string,
  action: "redrive" | "remove",
  { search }: { search?: string },
): Promise<number> {
  const selection = await select(context, { messages: { queue, search } });
  const { count } = selection;
  if (count > 0)
    await confirm(context, `${action} ${count === 1 ? "1 message" : `${count} messages`} of ${queue}?`);
  const acted = await actOn(context, selection, action);
  if (context.output === "json") await context.out(`${JSON.stringify(acted)}\n`);
  else {
    const done = action === "redrive" ? "redriven" : "removed";
    await context.out(`${acted.changed} of ${count} messages of ${queue} ${done}\n`);
    for (const { id, reason } of acted.skipped.slice(0, SKIPPED_PRINTED)) context.err(`${id}: ${reason}\n`);
    const hidden = acted.skipped_count - SKIPPED_PRINTED;
    if (hidden > 0) context.err(`and ${hidden} more; -o json shows 100\n`);
  }
  return EXIT.success;
}

export async function purgeQueue(context: CliContext, name: string): Promise<number> {
  if (!context.isYes)
    throw new CliError(`this removes every message of ${name} permanently; confirm with -y`, EXIT.usage);
  const { value } = await context.client.json<{ message: string }>(
    `/-/queues/${encodeURIComponent(name)}/messages`,
    { method: "DELETE" },
  );
  await context.out(context.output === "json" ? `${JSON.stringify(value)}\n` : `${value.message}\n`);
  return EXIT.success;
}

/** Reads the error of a message's attributes, which is JSON in a string. */
function errorOf(text: string | undefined): string {
  try {
    const { type, message } = JSON.parse(text ?? "") as { type: string; message: string };
    return cell(`${type}: ${message}`);
  } catch {
    return cell(text ?? "");
  }
}
