/** The clock of all runs of jobs: one timer, whose work is cut into slices. Thousands of runs may wait. */
import { contain } from "../base/boundary.ts";
import { every } from "../base/loop/pulse.ts";
import { TimeSlices } from "../base/loop/turns.ts";
import { SLICE_MS } from "../contracts/limits/event-loop.ts";

const TICK_MS = 250;
/** One tick of so many looks at those that rest, too: every 2 s. */
const RESTS = 8;
/** ... of which each ticks this often. Five thousand ticks every two seconds took one percent of a core. */
const RESTING_TICK_MS = 10_000;

export interface Ticking {
  /** Nothing is in hand: once in ten seconds is enough, and at its deadline (monotonic milliseconds). */
  readonly rests: boolean;
  readonly deadline: { readonly endsMs: number };
  tick(): void;
  /** Receives what `tick` throws. */
  unexpected(error: Error): void;
}

export class RunTicker {
  /** With the time of the last tick. */
  private readonly runs = new Map<Ticking, number>();
  /** Those that did not rest when they ticked last. */
  private readonly awake = new Set<Ticking>();
  private stop: (() => void) | undefined;
  private isTicking = false;
  private count = 0;

  /** `run` ticks four times a second until it is removed, and less often while it rests. */
  add(run: Ticking): void {
    this.runs.set(run, Number.NEGATIVE_INFINITY);
    if (!run.rests) this.awake.add(run);
    this.stop ??= every(TICK_MS, "the clock of all jobs", () => this.tickAll());
  }

  /** It rests no longer. */
  wake(run: Ticking): void {
    if (this.runs.has(run)) this.awake.add(run);
  }

  /** May be repeated. */
  remove(run: Ticking): void {
    this.runs.delete(run);
    this.awake.delete(run);
    if (this.runs.size > 0) return;
    this.stop?.();
    this.stop = undefined;
  }

  /** Each run ticks once, unless it may rest. Does nothing while an earlier call has not finished. */
  async tickAll(): Promise<void> {
    if (this.isTicking) return;
    this.isTicking = true;
    const slices = new TimeSlices(SLICE_MS);
    const isForAll = this.count++ % RESTS === 0;
    const nowMs = performance.now();
    for (const run of isForAll ? this.runs.keys() : this.awake) {
      if (run.rests && !this.isDue(run, nowMs)) continue;
      this.tick(run, nowMs);
      if (slices.isOver) await slices.rest();
    }
    this.isTicking = false;
  }

  private isDue(run: Ticking, nowMs: number): boolean {
    return nowMs >= Math.min(this.runs.get(run)! + RESTING_TICK_MS, run.deadline.endsMs);
  }

  private tick(run: Ticking, nowMs: number): void {
    this.runs.set(run, nowMs);
    contain(
      "a job",
      () => run.tick(),
      (error) => run.unexpected(error),
    );
    if (run.rests) this.awake.delete(run);
    else this.wake(run);
  }
}
