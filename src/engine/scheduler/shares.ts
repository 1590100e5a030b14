/**
 * The shares of APIs, and of the jobs of each, within one priority: deficit round robin by worker-seconds. Pure. A
 * deficit is how many worker-seconds fewer somebody who waits had than the one who had most. Somebody who does not wait
 * has none. Ten worker-seconds of it count like one worker fewer.
 */
import type { Claim, Claimant, Holding } from "./claims.ts";

/** The most that is remembered. */
const DEFICIT_MAX = 600;
const DEFICIT_OF_A_WORKER = 10;
/** A worker moves between two that both have some only for a difference of more than one worker, or it would move back. */
const MOVES_FOR = 1.5;

/** By API and by job; only of those who wait or have workers. */
export type Deficits = ReadonlyMap<string, number>;

/** An API within its priority, or a job within its API. */
export interface Share {
  /** Workers that it has, without those that yield to others. */
  held: number;
  waiting: number;
  deficit: number;
}

/** The shares that count for one claimant. */
export interface Shared {
  api: Share;
  job: Share;
}

export class Shares {
  private readonly before: Deficits;
  private readonly shares = new Map<string, Share>();
  /** The shares of which each competes with the others. */
  private readonly siblings = new Map<string, Map<string, Share>>();
  private readonly ofJobs = new Map<string, Shared>();

  constructor(before: Deficits, claims: readonly Claim[], held: readonly Holding[]) {
    this.before = before;
    for (const { by } of held) for (const share of both(this.of(by))) share.held++;
    for (const { by } of claims) for (const share of both(this.of(by))) share.waiting++;
  }

  of({ priority, api, job }: Claimant): Shared {
    const known = this.ofJobs.get(job);
    if (known !== undefined) return known;
    const shared = { api: this.share(`${priority}`, api), job: this.share(api, job) };
    this.ofJobs.set(job, shared);
    return shared;
  }

  private share(group: string, key: string): Share {
    const known = this.shares.get(key);
    if (known !== undefined) return known;
    const share = { held: 0, waiting: 0, deficit: this.before.get(key) ?? Number.NaN };
    this.shares.set(key, share);
    const siblings = this.siblings.get(group) ?? new Map<string, Share>();
    this.siblings.set(group, siblings.set(key, share));
    return share;
  }

  /** So many seconds have passed since the deficits before. */
  advance(seconds: number): Deficits {
    for (const siblings of this.siblings.values()) advance([...siblings.values()], seconds);
    return new Map([...this.shares].map(([key, { deficit }]) => [key, deficit]));
  }
}

/** Somebody new joins the round that goes on: as if it had waited as long as the one who waits longest. */
function advance(siblings: readonly Share[], seconds: number): void {
  let most = 0;
  let longest = 0;
  for (const { held, deficit } of siblings) {
    most = Math.max(most, held);
    if (deficit > longest) longest = deficit;
  }
  let least = Number.POSITIVE_INFINITY;
  for (const share of siblings) {
    const before = Number.isNaN(share.deficit) ? longest : share.deficit + (most - share.held) * seconds;
    share.deficit = share.waiting === 0 ? 0 : before;
    least = Math.min(least, share.deficit);
  }
  for (const share of siblings) share.deficit = Math.min(DEFICIT_MAX, share.deficit - least);
}

export function both({ api, job }: Shared): [Share, Share] {
  return [api, job];
}

/** Below 0 if `a` comes first: its API before other APIs, then its job before other jobs. */
export function compareShares(a: Shared, b: Shared): number {
  return (a.api === b.api ? 0 : compareShare(a.api, b.api)) || compareShare(a.job, b.job);
}

/** The one without any worker comes first, then the one with the least. */
export function compareShare(a: Share, b: Share): number {
  return Number(a.held > 0) - Number(b.held > 0) || weight(a) - weight(b);
}

/** Whether a worker of `b` should yield to `a`, which waits, within one priority. */
export function isOwed(a: Shared, b: Shared): boolean {
  if (a.api !== b.api) return owes(a.api, b.api);
  return a.job !== b.job && owes(a.job, b.job);
}

function owes(a: Share, b: Share): boolean {
  if (a.held > 0) return weight(b) - weight(a) >= MOVES_FOR;
  return b.held > 1 || (b.held === 1 && a.deficit >= b.deficit);
}

function weight({ held, deficit }: Share): number {
  return held - deficit / DEFICIT_OF_A_WORKER;
}
