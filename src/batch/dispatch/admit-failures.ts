/** A job whose batches fail waits until what is recorded about that leaves enough of the disk free. */
import type { IsolatedOutcomes } from "../isolate/isolated-outcomes.ts";
import type { DeadLetter } from "../letters/letters.ts";
import { type FailedAttempt, rowBytes } from "../records/batch-rows.ts";

/** Resolves when these may be written. Undefined: nothing has failed. */
export type AdmitFailures = (
  failures: readonly FailedAttempt[],
  letters: readonly DeadLetter[],
  isolated: Pick<IsolatedOutcomes, "failedBytes">,
) => Promise<unknown> | undefined;

export function admitFailures(admit: (bytes: number) => Promise<unknown>): AdmitFailures {
  return (failures, letters, { failedBytes }) => {
    const ofFailures = failures.reduce((sum, { fault }) => sum + rowBytes(fault), failedBytes);
    const bytes = letters.reduce((sum, { body }) => sum + body.length, ofFailures);
    return bytes > 0 ? admit(bytes) : undefined;
  };
}
