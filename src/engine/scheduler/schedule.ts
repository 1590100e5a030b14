/**
 * The scheduler: who gets compute that is free, and which workers of jobs yield to whom. Pure: it knows no clock. The
 * rule is in docs/decisions/0030-scheduler.md.
 */
import { type Claim, type Holding, LIVE_PRIORITY } from "./claims.ts";
import { type Compute, combine, fits, helps, minus, NO_COMPUTE, plus } from "./compute.ts";
import { both, compareShares, type Deficits, isOwed, Shares } from "./shares.ts";
import { type ClaimQueue, WaitingOrder } from "./waiting-order.ts";

/** Free compute is set aside for a claim that has waited so long and is wide: that needs more than what is free. */
const AGED_MS = 10_000;
/** For so many claims in one round is it tried whether workers could yield. Those after them have a smaller right to it. */
const YIELD_TRIES = 16;
/** For so many jobs in one round is it asked whether what they lack could ever be had. */
const POSSIBLE_TRIES = 64;

export interface Situation<C extends Claim, H extends Holding> {
  /** Monotonic milliseconds. */
  nowMs: number;
  /** Since the deficits before. */
  seconds: number;
  /** May be negative. */
  free: Compute;
  /** Oldest first. */
  claims: readonly C[];
  held: readonly H[];
  deficits: Deficits;
}

/** Why a claim is not granted. */
export interface Delay {
  /** Workers that yield to it. */
  yielding: number;
  /** How many of them come before it. */
  before: number;
}

export interface Decision<C extends Claim, H extends Holding> {
  granted: C[];
  /** All that should yield, those that have been asked before included. */
  yielding: Set<H>;
  /** Of the oldest of equal claims, where it was their turn to be looked at. */
  delays: Map<C, Delay>;
  deficits: Deficits;
  /** Free compute that is set aside for replicas. */
  asideForLive: Compute;
}

export function schedule<C extends Claim, H extends Holding>(situation: Situation<C, H>): Decision<C, H> {
  return new Round(situation).run();
}

class Round<C extends Claim, H extends Holding> {
  private readonly situation: Situation<C, H>;
  private readonly shares: Shares;
  private readonly decision: Decision<C, H>;
  /** What may still be granted. It is negative where more is set aside than is free. */
  private left: Compute;
  private readonly delayed = new Set<ClaimQueue<C>>();
  private yieldTriesLeft = YIELD_TRIES;
  private possibleTriesLeft = POSSIBLE_TRIES;

  constructor(situation: Situation<C, H>) {
    const { deficits, claims, held, seconds } = situation;
    this.situation = situation;
    this.left = situation.free;
    this.shares = new Shares(deficits, claims, held);
    this.decision = {
      ...{ granted: [], yielding: new Set<H>(), delays: new Map<C, Delay>() },
      ...{ deficits: this.shares.advance(seconds), asideForLive: { ...NO_COMPUTE } },
    };
  }

  run(): Decision<C, H> {
    const orders = new Map<number, WaitingOrder<C>>();
    for (const claim of this.situation.claims) {
      const { priority } = claim.by;
      const order = orders.get(priority) ?? new WaitingOrder<C>();
      orders.set(priority, order);
      order.add(claim, this.shares.of(claim.by));
    }
    const byPriority = [...orders.keys()].sort((a, b) => b - a);
    for (const [n, priority] of byPriority.entries()) {
      const order = orders.get(priority)!;
      order.serve((claim, queue) => this.serve(claim, queue, order));
      if (n < byPriority.length - 1) this.keepFromLower(order);
    }
    return this.decision;
  }

  private serve(claim: C, queue: ClaimQueue<C>, order: WaitingOrder<C>): boolean | "stop" {
    if (this.grant(claim) || this.makePlace(claim, queue)) {
      for (const share of both(queue.shared)) share.held++;
      return true;
    }
    this.delay(queue, claim, 0);
    const isAged = this.situation.nowMs - claim.sinceMs >= AGED_MS;
    if (isAged && this.isPossible(claim)) {
      this.setAside(claim, claim.need);
      queue.next++;
    }
    return this.yieldTriesLeft === 0 && !order.mayFit(this.left) ? "stop" : false;
  }

  /** What claims of one priority still lack is not for lower ones. */
  private keepFromLower({ queues }: WaitingOrder<C>): void {
    for (const { claims, next } of queues) {
      const lacking = claims.slice(next);
      if (lacking.length > 0 && this.isPossible(lacking[0]!))
        for (const claim of lacking) this.setAside(claim, claim.need);
    }
  }

  private grant(claim: C): boolean {
    if (!fits(claim.need, this.left)) return false;
    this.left = minus(this.left, claim.need);
    this.decision.granted.push(claim);
    return true;
  }

  /** Asks workers to yield, if together with what is left that is enough. */
  private makePlace(claim: C, queue: ClaimQueue<C>): boolean {
    if (this.yieldTriesLeft === 0) return false;
    const { free } = this.situation;
    // What is set aside for others is theirs, but workers may yield to this one too.
    let sum = combine(this.left, free, (left, real) => (left < 0 ? Math.min(0, real) : left));
    const chosen: H[] = [];
    while (!fits(claim.need, sum)) {
      const next = this.bestToYield(claim, sum);
      if (next === undefined) {
        this.yieldTriesLeft--;
        for (const holding of chosen) this.move(holding, 1);
        return false;
      }
      chosen.push(next);
      this.move(next, -1);
      sum = plus(sum, next.compute);
    }
    const yielded = chosen.reduce((all, { compute }) => plus(all, compute), NO_COMPUTE);
    this.setAside(
      claim,
      combine(claim.need, yielded, (need, theirs) => Math.max(0, need - theirs)),
    );
    this.delay(queue, claim, chosen.length);
    return true;
  }

  private move(holding: H, by: 1 | -1): void {
    if (by < 0) this.decision.yielding.add(holding);
    else this.decision.yielding.delete(holding);
    for (const share of both(this.shares.of(holding.by))) share.held += by;
  }

  private bestToYield({ by, need }: C, free: Compute): H | undefined {
    const { held, nowMs } = this.situation;
    const mine = this.shares.of(by);
    let best: H | undefined;
    for (const holding of held) {
      const isReady = holding.isYielding || holding.yieldsFromMs <= nowMs;
      if (!isReady || this.decision.yielding.has(holding) || !helps(holding.compute, need, free)) continue;
      if (holding.by.priority > by.priority) continue;
      const isLower = holding.by.priority < by.priority;
      if (!isLower && !isOwed(mine, this.shares.of(holding.by))) continue;
      if (best === undefined || this.compareToYield(holding, best) < 0) best = holding;
    }
    return best;
  }

  /** Who has been asked before, then of the lowest priority, then of who has most, then who has worked longest. */
  private compareToYield(a: H, b: H): number {
    return (
      Number(b.isYielding) - Number(a.isYielding) ||
      a.by.priority - b.by.priority ||
      compareShares(this.shares.of(b.by), this.shares.of(a.by)) ||
      a.yieldsFromMs - b.yieldsFromMs
    );
  }

  private setAside({ by }: C, compute: Compute): void {
    this.left = minus(this.left, compute);
    if (by.priority < LIVE_PRIORITY) return;
    this.decision.asideForLive = plus(this.decision.asideForLive, compute);
  }

  private delay(queue: ClaimQueue<C>, claim: C, yielding: number): void {
    if (this.delayed.has(queue)) return;
    this.decision.delays.set(claim, { yielding, before: this.delayed.size });
    this.delayed.add(queue);
  }

  /** Whether it fits once all the workers that owe it their compute have left. */
  private isPossible({ by, need }: C): boolean {
    if (this.possibleTriesLeft-- <= 0) return false;
    const mine = this.shares.of(by);
    let most = this.situation.free;
    for (const holding of this.situation.held) {
      const { priority, isPassing } = holding.by;
      if (!isPassing || priority > by.priority) continue;
      if (priority < by.priority || isOwed(mine, this.shares.of(holding.by)))
        most = plus(most, holding.compute);
    }
    return fits(need, most);
  }
}
