/**
 * The rows of messages about batches that finally failed: those in Quern's own dead letter queues, and those that wait
 * for SQS (outbox.ts). A message is in the same commit as its failure.
 */
import { timestamp } from "../../base/clock.ts";
import { newOrderedUlid } from "../../base/ids.ts";
import type { DeadLetterAttributes } from "../../contracts/queues.ts";
import type { Statements } from "../../database/database.ts";

export interface DeadLetter {
  message_id: string;
  queue: string;
  job_id: string;
  batch_index: number;
  round: number;
  /** The first of the items in `body`; null if it has all of the batch. */
  first_item: number | null;
  /** The batch's JSON array, as its workers received it, or some of its items. */
  body: Uint8Array;
  attributes_json: string;
  sent_time: string;
}

export interface DeadLetterDraft {
  queue: string;
  api_name: string;
  job_id: string;
  batch_index: number;
  round: number;
  body: Uint8Array;
  receiveCount: number;
  error: { type: string; message: string; traceback: string };
  /** If the message is about some items of the batch: the first of them, and where it came from. */
  items?: { first: number; source: { path: string; line?: number } | undefined };
}

export function batchId(jobId: string, batchIndex: number): string {
  return `${jobId}-${batchIndex}`;
}

export function makeLetter({
  queue,
  api_name,
  job_id,
  batch_index,
  round,
  body,
  items,
  ...about
}: DeadLetterDraft): DeadLetter {
  const { type, message, traceback } = about.error;
  const attributes: DeadLetterAttributes = {
    api_name,
    job_id,
    batch_id: batchId(job_id, batch_index),
    receive_count: String(about.receiveCount),
    round: String(round),
    ...(items === undefined ? {} : itemAttributes(items)),
    error: JSON.stringify({ type, message, traceback }),
  };
  return {
    message_id: newOrderedUlid(),
    queue,
    job_id,
    batch_index,
    round,
    first_item: items?.first ?? null,
    body,
    attributes_json: JSON.stringify(attributes),
    sent_time: timestamp(),
  };
}

function itemAttributes({ first, source }: NonNullable<DeadLetterDraft["items"]>) {
  return {
    item_index: String(first),
    ...(source === undefined ? {} : { source_path: source.path }),
    ...(source?.line === undefined ? {} : { source_line: String(source.line) }),
  };
}

export async function saveLetter(tx: Statements, letter: DeadLetter): Promise<void> {
  await tx.run(
    `INSERT INTO letters (message_id, queue, job_id, batch_index, round, first_item, body, attributes_json, sent_time)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      letter.message_id,
      letter.queue,
      letter.job_id,
      letter.batch_index,
      letter.round,
      letter.first_item,
      letter.body,
      letter.attributes_json,
      letter.sent_time,
    ],
  );
}

/** Oldest first, after `after`, without those of jobs of a copy: the messages to send. */
export function lettersToSend(
  db: Statements,
  queue: string,
  after: string,
  limit: number,
): Promise<DeadLetter[]> {
  return db.all<DeadLetter>(
    `SELECT * FROM letters WHERE queue = ? AND message_id > ?
     AND job_id NOT IN (SELECT job_id FROM jobs WHERE paused = 'copy') ORDER BY message_id LIMIT ?`,
    [queue, after, limit],
  );
}

/** Oldest first, after `after`. */
export function lettersOf(
  db: Statements,
  queue: string,
  after: string,
  limit: number,
): Promise<DeadLetter[]> {
  return db.all<DeadLetter>(
    "SELECT * FROM letters WHERE queue = ? AND message_id > ? ORDER BY message_id LIMIT ?",
    [queue, after, limit],
  );
}

/** What a message is about, without its body. */
export type LetterHead = Pick<DeadLetter, "message_id" | "job_id" | "batch_index" | "first_item">;

/** Those of these messages that the queue has; few of them. */
export function letterHeads(db: Statements, queue: string, ids: readonly string[]): Promise<LetterHead[]> {
  const places = ids.map(() => "?").join(", ");
  return db.all<LetterHead>(
    `SELECT message_id, job_id, batch_index, first_item FROM letters
     WHERE queue = ? AND message_id IN (${places}) ORDER BY message_id`,
    [queue, ...ids],
  );
}

export async function deleteLetters(db: Statements, ids: readonly string[]): Promise<number> {
  const places = ids.map(() => "?").join(", ");
  return db.run(`DELETE FROM letters WHERE message_id IN (${places})`, ids);
}
