/**
 * The turns of one job that enqueues. While others wait for its place, it gives the place back after a while and waits
 * for its next turn, last of its API. So a job that lists or reads for ever keeps nobody else waiting for ever.
 */
import { ENQUEUING_TURN_MAX_MS, ENQUEUING_TURN_MS } from "../../contracts/limits/jobs.ts";
import type { DescribedPlaces } from "./enqueue-places.ts";

/** How long a turn lasts if others wait. Pure. */
export class EnqueueTurn {
  private readonly lengthMs: number;
  private readonly beganMs: number;
  private progressMs: number | undefined;

  constructor(beganMs: number, lengthMs = ENQUEUING_TURN_MS) {
    this.beganMs = beganMs;
    this.lengthMs = lengthMs;
  }

  /** The job is further than in its last turn. */
  progressed(nowMs: number): void {
    this.progressMs ??= nowMs;
  }

  /**
   * Some stores list from the beginning again, and compressed files are read from the beginning. So a turn also lasts
   * twice as long as the way back took.
   */
  isOver(nowMs: number): boolean {
    const wayBackMs = this.progressMs === undefined ? 0 : this.progressMs - this.beganMs;
    return nowMs - this.beganMs >= Math.max(this.lengthMs, 2 * wayBackMs);
  }

  /** `isFurther`: the next turn begins after the beginning of this one. */
  next(beginsMs: number, isFurther: boolean): EnqueueTurn {
    const lengthMs = isFurther ? this.lengthMs : Math.min(2 * this.lengthMs, ENQUEUING_TURN_MAX_MS);
    return new EnqueueTurn(beginsMs, lengthMs);
  }
}

export class EnqueueTurns {
  private readonly places: DescribedPlaces;
  private readonly api: string;
  private readonly over: AbortSignal;
  private readonly nowMs: () => number;
  private turn: EnqueueTurn;
  private giveBack: (() => void) | undefined;
  private isWaiting = false;

  /** `over`: aborted when the job ends. */
  constructor(places: DescribedPlaces, api: string, over: AbortSignal, nowMs = () => performance.now()) {
    this.places = places;
    this.api = api;
    this.over = over;
    this.nowMs = nowMs;
    this.turn = new EnqueueTurn(nowMs());
  }

  /** Waits for the first turn; false if the job ends before. */
  async begin(): Promise<boolean> {
    if (!(await this.takePlace())) return false;
    this.turn = new EnqueueTurn(this.nowMs());
    return true;
  }

  /** Waits for the next turn; false if the job ends before. */
  async next(isFurther: boolean): Promise<boolean> {
    this.end();
    if (!(await this.takePlace())) return false;
    this.turn = this.turn.next(this.nowMs(), isFurther);
    return true;
  }

  /**
   * To be asked where the job can stop. `hasProgress`: it is further than at the beginning of this turn. `isAwaited`: it
   * holds something else that another job waits for.
   */
  isOver(hasProgress: boolean, isAwaited = false): boolean {
    const nowMs = this.nowMs();
    if (hasProgress) this.turn.progressed(nowMs);
    return this.turn.isOver(nowMs) && (isAwaited || this.places.isAwaited(this.api));
  }

  /** May be repeated. */
  end(): void {
    this.giveBack?.();
    this.giveBack = undefined;
  }

  /** Says what the job waits for; undefined during a turn. */
  describeWaiting(): string | undefined {
    return this.isWaiting ? this.places.describe(this.api) : undefined;
  }

  private async takePlace(): Promise<boolean> {
    this.isWaiting = true;
    this.giveBack = await this.places.take(this.api, this.over);
    this.isWaiting = false;
    return this.giveBack !== undefined;
  }
}
