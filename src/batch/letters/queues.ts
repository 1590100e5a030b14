/** Dead letter queues as users see them: counts, messages, purging (docs/contract/failing-batches.md#shared-queues). */
import { ServiceError } from "../../contracts/errors.ts";
import { parseQueueName, queueKey } from "../../contracts/queues.ts";
import type { Database } from "../../database/database.ts";
import { type DeadLetter, deleteLetters, lettersOf } from "./letters.ts";
import { type QueueCounts, queueCounts, queueExists, queueNames } from "./queue-counts.ts";

/** Messages deleted in one statement, so that other statements run in between. */
const PURGE_AT_ONCE = 100;

/** Few: a message has up to 256 KiB. */
const LETTERS_AT_ONCE = 16;

export interface DeadLetterPage {
  letters: AsyncGenerator<DeadLetter>;
  /** The start of the next page; known once the last message was read. */
  next: string | null;
}

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

  /** Throws `queue_not_found`. */
  async counts(given: string): Promise<QueueCounts> {
    await this.assertExists(given);
    return queueCounts(this.db, keyOf(given));
  }

  private async assertExists(given: string): Promise<void> {
    if (!(await queueExists(this.db, keyOf(given)))) throw queueNotFound(given);
  }

  /** Messages after `after`, oldest first. Read on demand: a page may have 128 MB. Throws `queue_not_found`. */
  async messages(given: string, after: string, limit: number): Promise<DeadLetterPage> {
    const first = await lettersOf(this.db, keyOf(given), after, 1);
    if (first.length === 0) await this.assertExists(given);
    const page: DeadLetterPage = {
      letters: this.lettersAfter(keyOf(given), after, limit, () => page),
      next: null,
    };
    return page;
  }

  private async *lettersAfter(
    queue: string,
    after: string,
    limit: number,
    page: () => DeadLetterPage,
  ): AsyncGenerator<DeadLetter> {
    let [last, left] = [after, limit];
    for (;;) {
      const letters = await lettersOf(this.db, queue, last, Math.min(LETTERS_AT_ONCE, left + 1));
      if (letters.length === 0) return;
      for (const letter of letters) {
        if (left-- === 0) {
          page().next = last;
          return;
        }
        yield letter;
        last = letter.message_id;
      }
    }
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
