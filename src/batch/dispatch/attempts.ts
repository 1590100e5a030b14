/**
 * Charges failed attempts to batches. A batch with an attempt left goes out again once the charge is durable; the other
 * ones have finally failed, and become messages in the job's dead letter queue (docs/decisions/0004-commit-order.md).
 */
import type { DeadLetter } from "../letters/letters.ts";
import type { FailedAttempt } from "../records/batch-rows.ts";
import type { LeaseCursor } from "./lease-cursor.ts";
import type { Settlements } from "./settlements.ts";

export interface AttemptsOptions {
  cursor: LeaseCursor;
  settlements: Settlements;
  /** The most attempts of a batch; `attempts` has those already charged to batches that failed. */
  maxAttempts: number;
  attempts: Map<number, number>;
  /** Makes the dead letter of a batch that finally failed; undefined if the job has no dead letter queue. */
  letterOf: ((failed: FailedAttempt, receiveCount: number, body: Uint8Array) => DeadLetter) | undefined;
}

export class Attempts {
  private readonly options: AttemptsOptions;

  constructor(options: AttemptsOptions) {
    this.options = options;
  }

  /** Charges an attempt; true if it was the last one. */
  fail(batch: number, { cause, fault }: Pick<FailedAttempt, "cause" | "fault">): boolean {
    const { attempts, maxAttempts, letterOf, settlements, cursor } = this.options;
    const loaded = cursor.find(batch);
    const count = (attempts.get(batch) ?? 0) + 1;
    const failed = { batch_index: batch, cause, fault, isFinal: count >= maxAttempts };
    if (failed.isFinal) attempts.delete(batch);
    else attempts.set(batch, count);
    const letter = failed.isFinal ? letterOf?.(failed, count, loaded.payload(batch)) : undefined;
    settlements.fail(loaded.segment, failed, letter);
    settlements.commitSoon(() => {
      if (!failed.isFinal) cursor.putBehind(batch);
    });
    return failed.isFinal;
  }
}
