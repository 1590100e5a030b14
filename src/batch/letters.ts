/**
 * Letters about batches that finally failed: the rows of Quern's own dead letter queues, and of those that wait for SQS
 * (outbox.ts). A letter is in the same commit as the failure that it tells of.
 */
import { timestamp } from "../base/clock.ts";
import { newOrderedUlid } from "../base/ids.ts";
import type { LetterAttributes } from "../contracts/queues.ts";
import { first, type Statements } from "../database/database.ts";

export interface Letter {
  message_id: string;
  queue: string;
  job_id: string;
  batch_index: number;
  round: number;
  /** The batch's JSON array, as its workers were given it. */
  body: Uint8Array;
  attributes_json: string;
  sent_time: string;
}

export interface LetterDraft {
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
}: LetterDraft): Letter {
  const { type, message, traceback } = about.error;
  const attributes: LetterAttributes = {
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

export async function saveLetter(tx: Statements, letter: Letter): Promise<void> {
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

/** Oldest first, behind `after`. */
/** The same without those of paused jobs, for whoever sends them. */
export function lettersToSend(
  db: Statements,
  queue: string,
  after: string,
  limit: number,
): Promise<Letter[]> {
  return db.all<Letter>(
    `SELECT * FROM letters WHERE queue = ? AND message_id > ?
     AND job_id NOT IN (SELECT job_id FROM jobs WHERE paused IS NOT NULL) ORDER BY message_id LIMIT ?`,
    [queue, after, limit],
  );
}

export function lettersOf(db: Statements, queue: string, after: string, limit: number): Promise<Letter[]> {
  return db.all<Letter>(
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

/** Of a queue of Quern's own; undefined when no letter and no job is there that names it. */
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

/** Every queue that a job or a letter names; those of SQS have what waits to be sent. */
export async function listQueues(db: Statements): Promise<QueueCounts[]> {
  return db.all<QueueCounts>(
    // By an index alone: to read on to a message's time is to read its body.
    `SELECT name, messages, (SELECT sent_time FROM letters WHERE message_id = oldest_id) AS oldest_sent_time
     FROM (SELECT name, count(message_id) AS messages, min(message_id) AS oldest_id
           FROM (SELECT DISTINCT dead_letter_queue AS name FROM jobs WHERE dead_letter_queue IS NOT NULL
                 UNION SELECT DISTINCT queue FROM letters) AS names
           LEFT JOIN letters ON letters.queue = names.name GROUP BY name) AS counted ORDER BY name`,
  );
}
