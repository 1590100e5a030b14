/**
 * Counts the messages of dead letter queues. A few thousand in one statement, because queues are as long as callers
 * make them, and messages stay until somebody takes them.
 */
import { QUEUES_COUNTED_MAX } from "../../contracts/limits/jobs.ts";
import { first, type Statements } from "../../database/database.ts";
import type { NamedQueue } from "./queue-turns.ts";

/** Rows of an index that are counted in one statement, which takes about a millisecond. */
export const LETTERS_COUNTED_AT_ONCE = 5_000;
/** No name of a queue has parentheses. */
const OTHER_QUEUES = "(others)";

export interface QueueCounts {
  name: string;
  messages: number;
  oldest_sent_time: string | null;
}

/** Whether a job or a message names it. */
export async function queueExists(db: Statements, name: string): Promise<boolean> {
  const letter = await first(db, "SELECT message_id FROM letters WHERE queue = ? LIMIT 1", [name]);
  if (letter !== undefined) return true;
  const job = await first(db, "SELECT job_id FROM jobs WHERE dead_letter_queue = ? LIMIT 1", [name]);
  return job !== undefined;
}

/** The messages of one queue. For an SQS queue, those that wait to be sent. */
export async function queueCounts(db: Statements, name: string): Promise<QueueCounts> {
  const counts: QueueCounts = { name, messages: 0, oldest_sent_time: null };
  for (let after = ""; ; ) {
    const piece = await countPiece(db, name, after);
    // From the row of the oldest message alone: each row has its message's body.
    if (after === "" && piece.oldest !== null) counts.oldest_sent_time = await sentTime(db, piece.oldest);
    counts.messages += piece.messages;
    if (piece.messages < LETTERS_COUNTED_AT_ONCE) return counts;
    after = piece.last;
  }
}

async function countPiece(db: Statements, name: string, after: string) {
  return (await first<{ messages: number; oldest: string | null; last: string }>(
    db,
    `SELECT count(*) AS messages, min(message_id) AS oldest, max(message_id) AS last
     FROM (SELECT message_id FROM letters WHERE queue = ? AND message_id > ?
           ORDER BY message_id LIMIT ?) AS piece`,
    [name, after, LETTERS_COUNTED_AT_ONCE],
  ))!;
}

/** Null if it was taken meanwhile. */
async function sentTime(db: Statements, messageId: string): Promise<string | null> {
  const sql = "SELECT sent_time FROM letters WHERE message_id = ?";
  return (await first<{ sent_time: string }>(db, sql, [messageId]))?.sent_time ?? null;
}

/** Names of queues after `after`: every queue that a job or a message names. */
export async function queueNames(db: Statements, after: string, limit: number): Promise<string[]> {
  const names: string[] = [];
  while (names.length < limit) {
    const last = names.at(-1) ?? after;
    // One name at a time, from two indexes: a list of distinct names would read all their messages.
    const next = await first<{ name: string | null }>(
      db,
      `SELECT min(name) AS name FROM (
         SELECT min(queue) AS name FROM letters WHERE queue > ?
         UNION ALL SELECT min(dead_letter_queue) FROM jobs WHERE dead_letter_queue > ?) AS names`,
      [last, last],
    );
    if (next!.name === null) break;
    names.push(next!.name);
  }
  return names;
}

/**
 * The queues of SQS for which messages wait, and the API of the oldest one; it is empty if that was deleted. They are
 * read one at a time from the index, however many messages they have.
 */
export async function* sqsQueues(db: Statements): AsyncGenerator<NamedQueue> {
  for (let after = "arn:"; ; ) {
    const next = await first<{ queue: string; api: string | null }>(
      db,
      `SELECT queue, (SELECT api_name FROM jobs WHERE jobs.job_id = letters.job_id) AS api FROM letters
       WHERE queue > ? AND queue < 'arn;' ORDER BY queue, message_id LIMIT 1`,
      [after],
    );
    if (next === undefined) return;
    after = next.queue;
    yield { queue: next.queue, api: next.api ?? "" };
  }
}

export interface FilledQueue extends QueueCounts {
  /** It has more messages: only so many are counted. */
  hasMore: boolean;
}

/** The first queues of Quern's own, by name, that have messages. */
export async function filledQueues(db: Statements, most: number): Promise<FilledQueue[]> {
  const filled: FilledQueue[] = [];
  for (let after = ""; filled.length < most; ) {
    const next = await first<{ name: string | null }>(
      db,
      // Without those of SQS, in which messages wait to be sent: `;` follows `:`.
      "SELECT min(queue) AS name FROM letters WHERE queue > ? AND NOT (queue >= 'arn:' AND queue < 'arn;')",
      [after],
    );
    if (next!.name === null) break;
    const name: string = next!.name;
    const { messages, oldest } = await countPiece(db, name, "");
    if (oldest !== null)
      filled.push({
        ...{ name, messages, hasMore: messages === LETTERS_COUNTED_AT_ONCE },
        oldest_sent_time: await sentTime(db, oldest),
      });
    after = name;
  }
  return filled;
}

interface Counted {
  queue: string;
  messages: number;
  oldest_id: string;
}

/**
 * The messages of a limited number of queues, and of all others together. Submissions choose the names of queues, and
 * each name takes a label of the metrics. The queues with the oldest messages keep theirs, whatever is submitted later.
 */
export async function letterTotals(db: Statements): Promise<{ queue: string; messages: number }[]> {
  let oldest: Counted[] = [];
  let others = 0;
  for await (const queues of countedQueues(db)) {
    oldest = [...oldest, ...queues].sort((a, b) => (a.oldest_id < b.oldest_id ? -1 : 1));
    for (const { messages } of oldest.splice(QUEUES_COUNTED_MAX)) others += messages;
  }
  const counted = oldest
    .map(({ queue, messages }) => ({ queue, messages }))
    .sort((a, b) => (a.queue < b.queue ? -1 : 1));
  return others === 0 ? counted : [...counted, { queue: OTHER_QUEUES, messages: others }];
}

/** All queues with messages, some at a time. A queue that continues in the next piece is counted with that one. */
async function* countedQueues(db: Statements): AsyncGenerator<Counted[]> {
  let open: Counted | undefined;
  let last = "";
  for (;;) {
    const rows = await db.all<Counted & { last_id: string }>(
      `SELECT queue, count(*) AS messages, min(message_id) AS oldest_id, max(message_id) AS last_id
       FROM (SELECT queue, message_id FROM letters WHERE (queue, message_id) > (?, ?)
             ORDER BY queue, message_id LIMIT ?) AS piece
       GROUP BY queue ORDER BY queue`,
      [open?.queue ?? "", last, LETTERS_COUNTED_AT_ONCE],
    );
    const isEnd = rows.reduce((sum, { messages }) => sum + messages, 0) < LETTERS_COUNTED_AT_ONCE;
    last = rows.at(-1)?.last_id ?? last;
    const queues = open === undefined ? rows : joined(open, rows);
    open = isEnd ? undefined : queues.pop();
    yield queues;
    if (isEnd) return;
  }
}

function joined(open: Counted, [next, ...rest]: readonly Counted[]): Counted[] {
  if (next?.queue !== open.queue) return next === undefined ? [open] : [open, next, ...rest];
  return [{ ...open, messages: open.messages + next.messages }, ...rest];
}
