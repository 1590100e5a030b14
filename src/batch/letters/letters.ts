/**
 * The rows of messages about batches that finally failed: those in Quern's own dead letter queues, and those that wait
 * for SQS (outbox.ts). A message is in the same commit as its failure.
 */
import { timestamp } from "../../base/clock.ts";
import { newOrderedUlid } from "../../base/ids.ts";
import type { DeadLetterAttributes } from "../../contracts/queues.ts";
import { first, type Statements } from "../../database/database.ts";

export interface DeadLetter {
  message_id: string;
  queue: string;
  job_id: string;
  batch_index: number;
  round: number;
  /** The batch's JSON array, as its workers received it. */
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
  ...about
}: DeadLetterDraft): DeadLetter {
  const { type, message, traceback } = about.error;
  const attributes: DeadLetterAttributes = {
    api_name,
    job_id,
    batch_id: batchId(job_id, batch_index),
    receive_count: String(about.receiveCount),
    round: String(round),
    error: JSON.stringify({ type, message, traceback }),
  };
  return {
    message_id: newOrderedUlid(),
    queue,
    job_id,
    batch_index,
    round,
    body,
    attributes_json: JSON.stringify(attributes),
    sent_time: timestamp(),
  };
}

export async function saveLetter(tx: Statements, letter: DeadLetter): Promise<void> {
  await tx.run(
    `INSERT INTO letters (message_id, queue, job_id, batch_index, round, body, attributes_json, sent_time)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      letter.message_id,
      letter.queue,
      letter.job_id,
      letter.batch_index,
      letter.round,
      letter.body,
      letter.attributes_json,
      letter.sent_time,
    ],
  );
}

/** Oldest first, after `after`, without those of paused jobs: the messages to send. */
export function lettersToSend(
  db: Statements,
  queue: string,
  after: string,
  limit: number,
): Promise<DeadLetter[]> {
  return db.all<DeadLetter>(
    `SELECT * FROM letters WHERE queue = ? AND message_id > ?
     AND job_id NOT IN (SELECT job_id FROM jobs WHERE paused IS NOT NULL) ORDER BY message_id LIMIT ?`,
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

export async function deleteLetters(db: Statements, ids: readonly string[]): Promise<number> {
  const places = ids.map(() => "?").join(", ");
  return db.run(`DELETE FROM letters WHERE message_id IN (${places})`, ids);
}

export interface QueueCounts {
  name: string;
  messages: number;
  oldest_sent_time: string | null;
}

/** Counts of one queue; undefined if no message and no job names it. */
export async function queueCounts(db: Statements, name: string): Promise<QueueCounts | undefined> {
  const row = await first<{ messages: number; oldest: string | null }>(
    db,
    `SELECT messages, (SELECT sent_time FROM letters WHERE message_id = oldest_id) AS oldest
     FROM (SELECT count(*) AS messages, min(message_id) AS oldest_id FROM letters WHERE queue = ?) AS counted`,
    [name],
  );
  const job = await first(db, "SELECT job_id FROM jobs WHERE dead_letter_queue = ? LIMIT 1", [name]);
  if (row!.messages === 0 && job === undefined) return undefined;
  return { name, messages: row!.messages, oldest_sent_time: row!.oldest };
}

/** Every queue that a job or a message names. For SQS queues, the messages that wait to be sent. */
export async function listQueues(db: Statements): Promise<QueueCounts[]> {
  return db.all<QueueCounts>(
    // Uses an index alone: reading each message's time as well would read its body.
    `SELECT name, messages, (SELECT sent_time FROM letters WHERE message_id = oldest_id) AS oldest_sent_time
     FROM (SELECT name, count(message_id) AS messages, min(message_id) AS oldest_id
           FROM (SELECT DISTINCT dead_letter_queue AS name FROM jobs WHERE dead_letter_queue IS NOT NULL
                 UNION SELECT DISTINCT queue FROM letters) AS names
           LEFT JOIN letters ON letters.queue = names.name GROUP BY name) AS counted ORDER BY name`,
  );
}
