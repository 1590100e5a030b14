/**
 * Who waits for compute, and the rounds of the scheduler: whose turn it is, and which workers of jobs yield. One round
 * follows each change, and one each half second while somebody waits (docs/decisions/0030-scheduler.md).
 */
import { contain } from "../base/boundary.ts";
import { COMPUTE_PLAN_MS, COMPUTE_ROUND_SHORT_MS } from "../contracts/limits/jobs.ts";
import type { Ask, Held, WaitingAsk } from "./reservations.ts";
import { type Compute, NO_COMPUTE } from "./scheduler/compute.ts";
import { type JobsAbove, jobsAbove } from "./scheduler/jobs-above.ts";
import { type Delay, schedule } from "./scheduler/schedule.ts";
import type { Deficits } from "./scheduler/shares.ts";

/** A pause of nine times what the last round took: rounds take a tenth of a core at most. */
const PAUSE_PER_ROUND = 9;
/** The same for rounds without a change, which only time makes useful: half a percent of a core, and at least every 5 s. */
const IDLE_PAUSE_PER_ROUND = 199;
const IDLE_PAUSE_MAX_MS = 5_000;

/** The account, as the scheduler's rounds see it. */
export interface Granting {
  readonly held: ReadonlyMap<unknown, Held>;
  free(): Compute;
  grant(ask: WaitingAsk): void;
}

export class ComputeQueue {
  /** Requests that are not granted yet, oldest first. */
  private readonly waiting = new Set<WaitingAsk>();
  private readonly account: Granting;
  private deficits: Deficits = new Map();
  private delays: ReadonlyMap<Ask, Delay> = new Map();
  /** By priority. Counted when it is asked for, once between two rounds. */
  private readonly above = new Map<number, JobsAbove>();
  private asideForLive: Compute = NO_COMPUTE;
  private beganMs = performance.now();
  private endedMs = this.beganMs;
  private isDue = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(account: Granting) {
    this.account = account;
  }

  get size(): number {
    return this.waiting.size;
  }

  /** Since when the first of them waits (monotonic milliseconds). */
  get sinceMs(): number | undefined {
    const [first] = this.waiting;
    return first?.sinceMs;
  }

  add(ask: WaitingAsk): void {
    this.waiting.add(ask);
    this.hasChanged();
  }

  /** False if it does not wait. */
  remove(ask: WaitingAsk): boolean {
    if (!this.waiting.delete(ask)) return false;
    // Compute that was set aside for it is for others now.
    this.hasChanged();
    return true;
  }

  /** Why a request waits; undefined if nothing is known, as of one that has many before it. */
  delayOf(ask: Ask): Delay | undefined {
    return this.delays.get(ask);
  }

  /** The jobs that come before all of this priority. */
  jobsAbove(priority: number): JobsAbove {
    const known = this.above.get(priority);
    if (known !== undefined) return known;
    const above = jobsAbove(priority, this.waiting, this.account.held.values());
    this.above.set(priority, above);
    return above;
  }

  /** Free compute that is set aside for replicas that wait. */
  get asideForReplicas(): Compute {
    if (this.isDue) this.round();
    return this.asideForLive;
  }

  /**
   * A round follows in this turn, one for all changes. It comes before that if somebody wants to know what is free, and
   * after a pause while rounds take long, because many wait.
   */
  hasChanged(): void {
    if (this.isDue) return;
    this.isDue = true;
    const round = () => {
      if (this.isDue) contain("the scheduler", () => this.round());
    };
    const tookMs = this.endedMs - this.beganMs;
    const pauseMs = this.endedMs + PAUSE_PER_ROUND * tookMs - performance.now();
    if (tookMs > COMPUTE_ROUND_SHORT_MS && pauseMs > 0) setTimeout(round, pauseMs).unref();
    else queueMicrotask(round);
  }

  private round(): void {
    this.isDue = false;
    const nowMs = performance.now();
    const { held } = this.account;
    const decision = schedule({
      ...{ nowMs, seconds: (nowMs - this.beganMs) / 1000, deficits: this.deficits },
      ...{ free: this.account.free(), claims: [...this.waiting], held: [...held.values()] },
    });
    for (const ask of decision.granted) {
      this.waiting.delete(ask);
      this.account.grant(ask);
    }
    for (const one of held.values()) askToYield(one, decision.yielding.has(one));
    this.deficits = decision.deficits;
    this.delays = decision.delays;
    this.asideForLive = decision.asideForLive;
    this.above.clear();
    this.beganMs = nowMs;
    this.endedMs = performance.now();
    this.roundLater();
  }

  /** While somebody waits: claims age, and workers that have just started may be asked to yield later. */
  private roundLater(): void {
    clearTimeout(this.timer);
    if (this.waiting.size === 0) return;
    const pauseMs = Math.min(IDLE_PAUSE_MAX_MS, IDLE_PAUSE_PER_ROUND * (this.endedMs - this.beganMs));
    this.timer = setTimeout(() => this.hasChanged(), Math.max(COMPUTE_PLAN_MS, pauseMs)).unref();
  }
}

function askToYield(held: Held, isAsked: boolean): void {
  if (held.isYielding === isAsked) return;
  held.isYielding = isAsked;
  contain(`compute of ${held.by.holder}`, () => held.asked?.(isAsked));
}
