/**
 * Quern's own dead letter queues, for whoever looks at them: counts, messages, purging
 * (docs/contract/failing-batches.md#shared-queues).
 */
import { ServiceError } from "../contracts/errors.ts";
import { parseQueueName, queueKey } from "../contracts/queues.ts";
import type { Database } from "../database/database.ts";
import {
  deleteLetters,
  type Letter,
  lettersOf,
  listQueues,
  type QueueCounts,
  queueCounts,
} from "./letters.ts";

/** Deleted in one statement; others run in between. */
const PURGE_AT_ONCE = 100;

/** A message has up to 256 KiB. */
const LETTERS_AT_ONCE = 16;

export interface LetterPage {
  letters: AsyncGenerator<Letter>;
  /** Where the next page begins; known once the last message was read. */
  next: string | null;
}

export class Queues {
  private readonly db: Database;

  constructor(db: Database) {
    this.db = db;
  }

  /** All that a job or a letter names; those of SQS with what waits to be sent. */
  list(): Promise<QueueCounts[]> {
    return listQueues(this.db);
  }

  /** Throws `queue_not_found`. */
  async counts(given: string): Promise<QueueCounts> {
    const counts = await queueCounts(this.db, keyOf(given));
    if (counts === undefined) throw queueNotFound(given);
    return counts;
  }

  /** Oldest first, behind the message `after`. Read as they are asked for: a page may have 128 MB. Throws `queue_not_found`. */
  async messages(given: string, after: string, limit: number): Promise<LetterPage> {
    const first = await lettersOf(this.db, keyOf(given), after, 1);
    // Counting takes longer than a page of a long queue: asked only where nothing shows that it is there.
    if (first.length === 0) await this.counts(given);
    const page: LetterPage = {
      letters: this.lettersAfter(keyOf(given), after, limit, () => page),
      next: null,
    };
    return page;
  }

  private async *lettersAfter(
    queue: string,
    after: string,
    limit: number,
    page: () => LetterPage,
  ): AsyncGenerator<Letter> {
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

  /** Removes what is in it now; resolves to how many messages that were. */
  async purge(given: string): Promise<number> {
    const { name } = await this.counts(given);
    let purged = 0;
    for (;;) {
      const ids = await this.db.all<{ message_id: string }>(
        "SELECT message_id FROM letters WHERE queue = ? ORDER BY message_id LIMIT ?",
        [name, PURGE_AT_ONCE],
      );
      if (ids.length === 0) return purged;
      purged += await deleteLetters(
        this.db,
        ids.map(({ message_id }) => message_id),
      );
    }
  }

  /** Removes one message; false when it is not there. Throws `queue_not_found`. */
  async remove(given: string, messageId: string): Promise<boolean> {
    const statement = "DELETE FROM letters WHERE queue = ? AND message_id = ?";
    if ((await this.db.run(statement, [keyOf(given), messageId])) === 1) return true;
    await this.counts(given);
    return false;
  }
}

/** The name under which letters are kept; empty, which none is under, where it is no legal name. */
function keyOf(given: string): string {
  const name = parseQueueName(given);
  return name === undefined ? "" : queueKey(name);
}

function queueNotFound(given: string): ServiceError {
  const message = `there is no queue "${given}"; \`quern queue get\` shows those that there are`;
  return new ServiceError("queue_not_found", message);
}
