/** Who may run jobs of which priority (docs/contract/submitting.md#priority-bound). */
import type { Context } from "hono";
import type { Keys } from "../../access/keys.ts";
import type { JobRow } from "../../batch/records/job-rows.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { isAdmin } from "../requests/authorization.ts";

export interface PriorityBound {
  keys: Keys;
  /** `--submit-priority-max`: the highest priority for callers without an admin key. */
  submitPriorityMax: number;
}

/** The highest priority that the caller may give a job; undefined is any. */
export function priorityMaxOf(c: Context, { keys, submitPriorityMax }: PriorityBound): number | undefined {
  return isAdmin(c, keys) ? undefined : submitPriorityMax;
}

/** Throws unless the caller may begin another round of this job. */
export function assertMayRepeat(c: Context, bound: PriorityBound, { job_id, priority }: JobRow): void {
  const most = priorityMaxOf(c, bound);
  if (most === undefined || priority <= most) return;
  const message = `job ${job_id} has priority ${priority}, and this server's --submit-priority-max is ${most}; only an admin key may run it again`;
  throw new ServiceError("invalid_request", message);
}
