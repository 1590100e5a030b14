/**
 * Stops that users wait for. A stop takes effect in memory at once: the job gives out no batch any more. Its record may
 * have to wait for space on the disk. The user gets an error then, and the record follows once there is space.
 */
import { inBackground } from "../../base/boundary.ts";
import { delay } from "../../base/clock.ts";
import { describeShortage, shortageOf } from "../../base/disk-full.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { STOP_RECORD_MS } from "../../contracts/limits/jobs.ts";
import type { Database } from "../../database/database.ts";

export interface Stop {
  /** Stops the job. */
  end: () => Promise<void>;
  /** Why the job waits for the disk now; undefined if it does not. */
  shortage: () => unknown;
}

export class StopsInProgress {
  private readonly db: Database;
  /** By job. Whoever asks again waits for the same one. */
  private readonly ends = new Map<string, Promise<void>>();

  /** `db`: without patience. */
  constructor(db: Database) {
    this.db = db;
  }

  /** Throws `disk_full`, or what the database throws, if the stop cannot be recorded for now. */
  async stop(jobId: string, { end, shortage }: Stop): Promise<void> {
    const ending = this.ends.get(jobId) ?? this.begin(jobId, end);
    const isOver = ending.then(() => true);
    if (await Promise.race([isOver, delay(STOP_RECORD_MS).then(() => false)])) return;
    // Something else may last: the store of the output does not answer, say.
    const error = shortage() ?? (await this.failure(jobId));
    if (error !== undefined) throw shortageOf(error) === undefined ? error : willFollow(error);
    await ending;
  }

  private begin(jobId: string, end: () => Promise<void>): Promise<void> {
    const ending = end().finally(() => this.ends.delete(jobId));
    this.ends.set(jobId, ending);
    // Its user may have got an error before.
    inBackground(ending.catch(() => {}));
    return ending;
  }

  /** Of a write that changes nothing. */
  private failure(jobId: string): Promise<unknown> {
    return this.db.run("UPDATE jobs SET workers = workers WHERE job_id = ?", [jobId]).then(
      () => undefined,
      (error: unknown) => error,
    );
  }
}

function willFollow(cause: unknown): ServiceError {
  // Without the cause, which would be answered in words of its own.
  const message = `${describeShortage(cause)}: the job gives out no batch any more, and its stop is recorded once there is space. Free some: \`quern doctor\` on the server shows what uses it. If the server restarts before that, stop the job again`;
  return new ServiceError(shortageOf(cause) === "disk" ? "disk_full" : "server_unavailable", message);
}
