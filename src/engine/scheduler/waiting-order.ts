/** The claims of one priority in the order of their right to compute: of the APIs, then of the jobs of each. Pure. */
import TinyQueue from "tinyqueue";
import type { Claim } from "./claims.ts";
import { type Compute, combine, fits, isEqual } from "./compute.ts";
import { compareShare, type Share, type Shared } from "./shares.ts";

/** Equal claims of one job, or of one API's replicas, oldest first. */
export interface ClaimQueue<C extends Claim> {
  readonly claims: C[];
  /** The first that has not been served. */
  next: number;
  readonly shared: Shared;
}

/** The jobs of one API. */
interface ApiQueue<C extends Claim> {
  readonly share: Share;
  readonly jobs: TinyQueue<ClaimQueue<C>>;
}

export class WaitingOrder<C extends Claim> {
  readonly queues: ClaimQueue<C>[] = [];
  private readonly ofJobs = new Map<Shared, ClaimQueue<C>[]>();
  /** The least that any claim needs, part by part. */
  private least: Compute | undefined;

  /** Claims are added oldest first. */
  add(claim: C, shared: Shared): void {
    const theirs = this.ofJobs.get(shared) ?? [];
    const queue = theirs.find(({ claims: [first] }) => isEqual(first!.need, claim.need));
    if (queue === undefined) this.ofJobs.set(shared, [...theirs, this.newQueue(claim, shared)]);
    else queue.claims.push(claim);
  }

  private newQueue(claim: C, shared: Shared): ClaimQueue<C> {
    const queue = { claims: [claim], next: 0, shared };
    this.queues.push(queue);
    this.least = combine(this.least ?? claim.need, claim.need, (a, b) => Math.min(a, b));
    return queue;
  }

  /** Whether one of these claims could fit. */
  mayFit(free: Compute): boolean {
    return this.least !== undefined && fits(this.least, free);
  }

  /**
   * Calls `serve` for one claim after the other, in their order. If it returns true, the claim is served: its API and its
   * job have one worker more, and the next claim of the job takes its turn. If it returns false, the job is passed over.
   */
  serve(serve: (claim: C, queue: ClaimQueue<C>) => boolean | "stop"): void {
    const apis = new TinyQueue(this.byApi(), compareApis);
    for (let api = apis.pop(); api !== undefined; api = apis.pop()) {
      const queue = api.jobs.pop()!;
      const outcome = serve(headOf(queue), queue);
      if (outcome === "stop") return;
      if (outcome && ++queue.next < queue.claims.length) api.jobs.push(queue);
      if (api.jobs.length > 0) apis.push(api);
    }
  }

  private byApi(): ApiQueue<C>[] {
    const jobsOf = new Map<Share, ClaimQueue<C>[]>();
    for (const queue of this.queues) {
      const jobs = jobsOf.get(queue.shared.api);
      if (jobs === undefined) jobsOf.set(queue.shared.api, [queue]);
      else jobs.push(queue);
    }
    return [...jobsOf].map(([share, jobs]) => ({ share, jobs: new TinyQueue(jobs, compareJobs) }));
  }
}

function headOf<C extends Claim>({ claims, next }: ClaimQueue<C>): C {
  return claims[next]!;
}

function compareApis(a: ApiQueue<Claim>, b: ApiQueue<Claim>): number {
  return compareShare(a.share, b.share) || headOf(a.jobs.peek()!).sinceMs - headOf(b.jobs.peek()!).sinceMs;
}

function compareJobs(a: ClaimQueue<Claim>, b: ClaimQueue<Claim>): number {
  return compareShare(a.shared.job, b.shared.job) || headOf(a).sinceMs - headOf(b).sinceMs;
}
