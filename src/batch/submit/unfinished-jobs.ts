/**
 * How many jobs may be unfinished at once. Each is held in memory and looked at four times a second, also while it
 * waits. Paused ones count too: they all may go on at once. An API may have twice as many as stay free for the jobs of
 * others. Pure.
 */
import { ServiceError } from "../../contracts/errors.ts";
import { JOBS_UNFINISHED_MAX } from "../../contracts/limits/jobs.ts";

/** Throws `queue_full`. `ofApi`: unfinished jobs of this API; `ofAll`: of all APIs. */
export function assertMayBegin(apiName: string, ofApi: number, ofAll: number): void {
  const free = JOBS_UNFINISHED_MAX - ofAll;
  if (ofApi < 2 * free) return;
  const message = `${ofApi} jobs of ${apiName} and ${ofAll} jobs in all have not ended; the limit is ${JOBS_UNFINISHED_MAX}, and an API may have twice as many as it leaves free; wait until some have ended, or stop some with \`quern job stop\``;
  throw new ServiceError("queue_full", message, { retryAfterS: 60 });
}
