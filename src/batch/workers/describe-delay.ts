/** Says in words why a job's workers wait, and for whom. Only administrators may read the names of other APIs. */
import type { JobsAbove } from "../../engine/scheduler/jobs-above.ts";
import type { Delay } from "../../engine/scheduler/schedule.ts";

/** So that the message stays one sentence. */
const APIS_SHOWN = 5;

/** The end of a sentence; empty if nothing is known. Names APIs if `withNames`. */
export function describeDelay(delay: Delay | undefined, above: JobsAbove, withNames: boolean): string {
  if (delay !== undefined && delay.yielding > 0) {
    const { yielding } = delay;
    return `; ${yielding} worker${yielding === 1 ? " of another job yields" : "s of other jobs yield"} to it after the batch in hand`;
  }
  if (above.count > 0) return describeAbove(delay, above, withNames);
  if (delay === undefined) return "";
  const { before } = delay;
  if (before === 0) return "; it is the next to get some";
  return before === 1 ? "; 1 other comes before it" : `; ${before} others come before it`;
}

function describeAbove(
  delay: Delay | undefined,
  { count, waiting, apis }: JobsAbove,
  withNames: boolean,
): string {
  const who =
    count === 1 ? "1 job of higher priority comes first" : `${count} jobs of higher priority come first`;
  const others = (delay?.before ?? 0) - waiting;
  const then = others > 0 ? `, then ${others} other${others === 1 ? "" : "s"}` : "";
  return `; ${who}${withNames ? ` (of ${namesOf(apis)})` : ""}${then}`;
}

function namesOf(apis: readonly string[]): string {
  const shown = apis.slice(0, APIS_SHOWN).join(", ");
  const more = apis.length - APIS_SHOWN;
  return `API${apis.length === 1 ? "" : "s"} ${shown}${more > 0 ? ` and ${more} more` : ""}`;
}
