/** Which jobs come before all of a lower priority, so that these can say what they wait for. Pure. */
import { type Claim, type Claimant, type Holding, LIVE_PRIORITY } from "./claims.ts";

export interface JobsAbove {
  /** How many jobs of a higher priority have compute or wait for it. */
  count: number;
  /** How many of them wait. */
  waiting: number;
  /** Their APIs, those with most of them first. */
  apis: readonly string[];
}

export function jobsAbove(
  priority: number,
  claims: Iterable<Pick<Claim, "by">>,
  held: Iterable<Pick<Holding, "by">>,
): JobsAbove {
  const above = new Map<string, Claimant>();
  const add = ({ by }: { by: Claimant }) => {
    // Jobs only: replicas come before all jobs, and stages of applications do not pass.
    if (by.priority > priority && by.priority < LIVE_PRIORITY && by.isPassing) above.set(by.job, by);
  };
  for (const claim of claims) add(claim);
  const waiting = above.size;
  for (const holding of held) add(holding);
  const ofApis = new Map<string, number>();
  for (const { apiName } of above.values()) ofApis.set(apiName, (ofApis.get(apiName) ?? 0) + 1);
  const apis = [...ofApis].sort(([, a], [, b]) => b - a).map(([name]) => name);
  return { count: above.size, waiting, apis };
}
