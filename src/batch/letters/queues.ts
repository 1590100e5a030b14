/** Dead letter queues as users see them: counts, messages, purging (docs/contract/failing-batches.md#shared-queues). */
import { ServiceError } from "../../contracts/errors.ts";
import { parseQueueName, queueKey } from "../../contracts/queues.ts";
import type { Database } from "../../database/database.ts";
import { deleteLetters, type LetterHead, letterHeads } from "./letters.ts";
import {
  type FilledQueue,
  filledQueues,
  type QueueCounts,
  queueCounts,
  queueExists,
  queueNames,
} from "./queue-counts.ts";
import { type DeadLetterPage, idsOfLetters, pageOfLetters } from "./search-letters.ts";

/** Messages deleted in one statement, so that other statements run in between. */
const PURGE_AT_ONCE = 100;

/** SQLite passes the bodies of up to 256 KiB to find what comes after them. */
const HEADS_AT_ONCE = 50;

export interface QueuePage {
  queues: QueueCounts[];
  /** The last name of this page; null on the last page. */
  next_cursor: string | null;
}

export class Queues {
  private readonly db: Database;

  constructor(db: Database) {
    this.db = db;
  }

  /**
   * Queues that a job or a message names, by name, after `after`. For SQS queues, the messages that wait to be sent.
   */
  async list(after: string, limit: number): Promise<QueuePage> {
    const names = await queueNames(this.db, after, limit + 1);
    const queues: QueueCounts[] = [];
    for (const name of names.slice(0, limit)) queues.push(await queueCounts(this.db, name));
    return { queues, next_cursor: names.length > limit ? names[limit - 1]! : null };
  }

  /** The first of Quern's own queues that have messages. */
  filled(most: number): Promise<FilledQueue[]> {
    return filledQueues(this.db, most);
  }

  /** Throws `queue_not_found`. */
  async counts(given: string): Promise<QueueCounts> {
    await this.assertExists(given);
    return queueCounts(this.db, keyOf(given));
  }

  private async assertExists(given: string): Promise<void> {
    if (!(await queueExists(this.db, keyOf(given)))) throw queueNotFound(given);
  }

  /** Messages after `after`, oldest first. Read on demand: a page may have 128 MB. Throws `queue_not_found`. */
  async messages(given: string, after: string, limit: number, search?: string): Promise<DeadLetterPage> {
    await this.assertExists(given);
    return pageOfLetters(this.db, keyOf(given), { after, limit, search });
  }

  /** The ids of all messages that match, oldest first; undefined if they are more than `most`. Throws `queue_not_found`. */
  async ids(given: string, search: string | undefined, most: number): Promise<string[] | undefined> {
    await this.assertExists(given);
    return idsOfLetters(this.db, keyOf(given), search, most);
  }

  /** Those of these messages that the queue has, in the order of `ids`, without their bodies. */
  async heads(given: string, ids: readonly string[]): Promise<LetterHead[]> {
    const heads: LetterHead[] = [];
    for (let at = 0; at < ids.length; at += HEADS_AT_ONCE)
      heads.push(...(await letterHeads(this.db, keyOf(given), ids.slice(at, at + HEADS_AT_ONCE))));
    return heads;
  }

  /** Removes all its messages; resolves to their number. */
  async purge(given: string): Promise<number> {
    await this.assertExists(given);
    let purged = 0;
    for (;;) {
      const ids = await this.db.all<{ message_id: string }>(
        "SELECT message_id FROM letters WHERE queue = ? ORDER BY message_id LIMIT ?",
        [keyOf(given), PURGE_AT_ONCE],
      );
      if (ids.length === 0) return purged;
      purged += await deleteLetters(
        this.db,
        ids.map(({ message_id }) => message_id),
      );
    }
  }

  /** Removes these messages, few of them; resolves to their number. */
  removeSome(given: string, ids: readonly string[]): Promise<number> {
    if (ids.length === 0) return Promise.resolve(0);
    const places = ids.map(() => "?").join(", ");
    const statement = `DELETE FROM letters WHERE queue = ? AND message_id IN (${places})`;
    return this.db.run(statement, [keyOf(given), ...ids]);
  }

  /** Removes one message; false if it is not there. Throws `queue_not_found`. */
  async remove(given: string, messageId: string): Promise<boolean> {
    const statement = "DELETE FROM letters WHERE queue = ? AND message_id = ?";
    if ((await this.db.run(statement, [keyOf(given), messageId])) === 1) return true;
    await this.assertExists(given);
    return false;
  }
}

/** The key under which messages are stored; for an illegal name it is empty, which no message has. */
function keyOf(given: string): string {
  const name = parseQueueName(given);
  return name === undefined ? "" : queueKey(name);
}

function queueNotFound(given: string): ServiceError {
  const message = `there is no queue "${given}"; \`quern queue get\` lists the queues`;
  return new ServiceError("queue_not_found", message);
}
