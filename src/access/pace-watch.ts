/** Refuses small bodies that stop arriving. One timer for all of them: a timer for each would cost more than the body. */
import { contain } from "../base/boundary.ts";
import { FewEachTurn, type NextTurn } from "../base/loop/turns.ts";
import { BODY_PACE_MS, BODY_PACE_SHARE, LATE_AT_ONCE_MAX } from "../contracts/limits/requests.ts";

export interface WatchedBody {
  /** Bytes that have arrived. */
  readonly bytes: number;
  /** Bytes that the body has, as far as that is known. */
  readonly size: number;
}

interface Watched {
  /** The bytes that had arrived at the last check; undefined before the first one. */
  before: number | undefined;
  onSlow: () => void;
}

export class PaceWatch {
  private readonly bodies = new Map<WatchedBody, Watched>();
  /** Those that are too slow, until their turn. */
  private readonly slow = new Set<WatchedBody>();
  private readonly refusals: FewEachTurn;
  private timer: NodeJS.Timeout | undefined;

  constructor(nextTurn?: NextTurn) {
    this.refusals = new FewEachTurn("a slow body", LATE_AT_ONCE_MAX, nextTurn);
  }

  get size(): number {
    return this.bodies.size;
  }

  /** Calls `onSlow` if the body stops arriving, until it is deleted. */
  add(body: WatchedBody, onSlow: () => void): void {
    this.bodies.set(body, { before: undefined, onSlow });
    this.timer ??= setInterval(() => contain("the pace of bodies", () => this.check()), BODY_PACE_MS).unref();
  }

  delete(body: WatchedBody): void {
    this.bodies.delete(body);
    this.slow.delete(body);
  }

  /** Called once in each period. A body is judged by whole periods only. */
  check(): void {
    for (const [body, watched] of this.bodies) {
      const { before, onSlow } = watched;
      watched.before = body.bytes;
      if (before === undefined || body.bytes - before >= body.size * BODY_PACE_SHARE) continue;
      this.bodies.delete(body);
      this.slow.add(body);
      this.refusals.add(() => {
        if (this.slow.delete(body)) onSlow();
      });
    }
    if (this.bodies.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }
}
