/** Quern's own dead letter queues, for whoever looks at them: counts, messages, purging (decisions 3.7, 9.5). */
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
    const name = parseQueueName(given);
    const counts = name && (await queueCounts(this.db, queueKey(name)));
    if (counts !== undefined) return counts;
    throw new ServiceError(
      "queue_not_found",
      `there is no queue "${given}"; \`quern queue get\` shows those that there are`,
    );
  }

  /** Oldest first, behind the message `after`. */
  async messages(
    given: string,
    after: string,
    limit: number,
  ): Promise<{ letters: Letter[]; next: string | null }> {
    const { name } = await this.counts(given);
    const letters = await lettersOf(this.db, name, after, limit + 1);
    const page = letters.slice(0, limit);
    return { letters: page, next: letters.length > limit ? page[page.length - 1]!.message_id : null };
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

  /** Removes one message. Throws `queue_not_found`. */
  async remove(given: string, messageId: string): Promise<boolean> {
    const { name } = await this.counts(given);
    const changed = await this.db.run("DELETE FROM letters WHERE queue = ? AND message_id = ?", [
      name,
      messageId,
    ]);
    return changed === 1;
  }
}
