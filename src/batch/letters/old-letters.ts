/**
 * Removes messages from Quern's own dead letter queues after the retention, so that a queue that nobody reads does not
 * grow for ever. Those that wait for SQS are the outbox's, which gives them up by itself.
 */
import { firstUlidOf } from "../../base/ids.ts";
import { LETTERS_AGED_AT_ONCE } from "../../contracts/limits/jobs.ts";
import type { Database } from "../../database/database.ts";
import { deleteLetters } from "./letters.ts";

/** No name of a queue of Quern's own has a colon. */
const SQS = "arn:";

/**
 * Removes those that were sent before `beforeMs`; resolves to their number. Each statement looks at few rows, in the
 * order of their ids, which begin with their time: a row's time is behind its body, of up to 256 KiB.
 */
export async function removeOldLetters(
  db: Database,
  beforeMs: number,
  isStopped: () => boolean,
): Promise<number> {
  const find = `SELECT message_id, queue FROM letters WHERE message_id > ? AND message_id < ?
    ORDER BY message_id LIMIT ${LETTERS_AGED_AT_ONCE}`;
  let removed = 0;
  for (let after = ""; !isStopped(); ) {
    const letters = await db.all<{ message_id: string; queue: string }>(find, [after, firstUlidOf(beforeMs)]);
    const own = letters.filter(({ queue }) => !queue.startsWith(SQS)).map(({ message_id }) => message_id);
    if (own.length > 0) removed += await deleteLetters(db, own);
    if (letters.length < LETTERS_AGED_AT_ONCE) break;
    after = letters.at(-1)!.message_id;
  }
  return removed;
}
