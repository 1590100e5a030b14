/** `quern queue get|messages|purge`: dead letter queues. */
import { type CliContext, CliError, EXIT } from "./context.ts";
import { cell, since, table } from "./table.ts";

interface Counts {
  name: string;
  messages: number;
  oldest_sent_time: string | null;
}

interface Message {
  message_id: string;
  body: string;
  attributes: Record<string, string>;
  sent_time: string;
}

/** One queue, or all that jobs name. */
export async function getQueues(
  { client, output, out }: CliContext,
  name: string | undefined,
): Promise<number> {
  const path = name === undefined ? "/-/queues" : `/-/queues/${encodeURIComponent(name)}`;
  const { value, text } = await client.json<{ queues: Counts[] } | Counts>(path);
  const queues = "queues" in value ? value.queues : [value];
  if (output === "json") await out(`${text}\n`);
  else if (queues.length === 0) await out("no dead letter queues: no job names one\n");
  else {
    const rows = queues.map(({ name, messages, oldest_sent_time }) => [
      name,
      String(messages),
      oldest_sent_time === null ? "-" : since(oldest_sent_time),
    ]);
    await out(`${table(["queue", "messages", "oldest"], rows)}\n`);
  }
  return EXIT.success;
}

export async function queueMessages(
  { client, output, out, err }: CliContext,
  name: string,
  options: { limit: string; cursor?: string },
): Promise<number> {
  const { value, text } = await client.json<{ messages: Message[]; next_cursor: string | null }>(
    `/-/queues/${encodeURIComponent(name)}/messages`,
    { query: { limit: options.limit, cursor: options.cursor } },
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
  if (value.next_cursor !== null) err(`more: --cursor ${value.next_cursor}; all of each: -o json\n`);
  return EXIT.success;
}

export async function purgeQueue(context: CliContext, name: string): Promise<number> {
  if (!context.isYes)
    throw new CliError(`this removes every message of ${name} for good; say so with -y`, EXIT.usage);
  const { value } = await context.client.json<{ message: string }>(
    `/-/queues/${encodeURIComponent(name)}/messages`,
    { method: "DELETE" },
  );
  await context.out(context.output === "json" ? `${JSON.stringify(value)}\n` : `${value.message}\n`);
  return EXIT.success;
}

/** Attributes are for programs: the error is JSON in a string. */
function errorOf(text: string | undefined): string {
  try {
    const { type, message } = JSON.parse(text ?? "") as { type: string; message: string };
    return cell(`${type}: ${message}`);
  } catch {
    return cell(text ?? "");
  }
}
