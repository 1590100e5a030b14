/**
 * Charges failed attempts to batches. A batch with an attempt left goes out again once the charge is durable. The other
 * ones have finally failed, and become messages in the job's dead letter queue (docs/decisions/0004-commit-order.md);
 * or they are split (isolation.ts).
 */
import type { DeadLetter } from "../letters/letters.ts";
import type { FailedAttempt } from "../records/batch-rows.ts";
import type { ErrorBudget } from "./error-budget.ts";
import type { Isolation } from "./isolation.ts";
import type { LeaseCursor } from "./lease-cursor.ts";
import type { Settlements } from "./settlements.ts";

export interface AttemptsOptions {
  cursor: LeaseCursor;
  settlements: Settlements;
  /** The most attempts of a batch; `attempts` has those already charged to batches that failed. */
  maxAttempts: number;
  attempts: Map<number, number>;
  errors: ErrorBudget;
  /** Makes the dead letter of a batch that finally failed; undefined if the job has no dead letter queue. */
  letterOf: ((failed: FailedAttempt, receiveCount: number, body: Uint8Array) => DeadLetter) | undefined;
  /** Undefined if batches that fail are not split. */
  isolation?: Isolation | undefined;
}

/** `maySplit`: false if the parts of the batch must not be tried. */
type Failure = Pick<FailedAttempt, "cause" | "fault"> & { maySplit?: boolean };

/** Parts would fail as the whole did if predict() does not return one value an item. */
function isSplittable({ fault, maySplit = true }: Failure): boolean {
  return maySplit && fault.stage !== "values";
}

export class Attempts {
  private readonly options: AttemptsOptions;

  constructor(options: AttemptsOptions) {
    this.options = options;
  }

  /**
   * Charges an attempt to a batch, or to the part of it that is out. True if something has finally failed: the batch, or
   * an item of it while none has succeeded.
   */
  fail(batch: number, failure: Failure): boolean {
    const { isolation } = this.options;
    return isolation?.has(batch) === true
      ? this.failPart(isolation, batch, failure)
      : this.failBatch(batch, failure);
  }

  private failPart(isolation: Isolation, batch: number, failure: Failure): boolean {
    const { cursor, settlements } = this.options;
    const loaded = cursor.find(batch);
    const { isLeft, isFinal } = isolation.failed(batch, loaded, failure, isSplittable(failure));
    settlements.commitSoon(() => {
      if (isLeft) cursor.putBack([batch]);
    });
    return isFinal;
  }

  private failBatch(batch: number, failure: Failure): boolean {
    const { cause, fault } = failure;
    const { attempts, maxAttempts, errors, letterOf, settlements, cursor, isolation } = this.options;
    const loaded = cursor.find(batch);
    const count = (attempts.get(batch) ?? 0) + 1;
    const isLast = count >= maxAttempts;
    const isSplit = isLast && isSplittable(failure) && isolation?.begin(batch, count, loaded) === true;
    const isFinal = isLast && !isSplit;
    const failed = { batch_index: batch, cause, isFinal, ...(isFinal ? errors.keep(fault) : { fault }) };
    if (isLast) attempts.delete(batch);
    else attempts.set(batch, count);
    const letter = failed.isFinal ? letterOf?.(failed, count, loaded.payload(batch)) : undefined;
    settlements.fail(loaded.segment, failed, letter);
    settlements.commitSoon(() => {
      if (!failed.isFinal) cursor.putBehind(batch);
    });
    return failed.isFinal;
  }
}
