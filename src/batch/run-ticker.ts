/** The clock of all runs of jobs: one timer, whose work is cut into slices. Thousands of runs may wait. */
import { contain } from "../base/boundary.ts";
import { TimeSlices } from "../base/clock.ts";
import { SLICE_MS } from "../contracts/limits/event-loop.ts";

const TICK_MS = 250;
/** One tick of so many is also for those that rest. */
const RESTS = 4;

export interface Ticking {
  /** Nothing is in hand: once a second is enough. */
  readonly rests: boolean;
  tick(): void;
  /** Receives what `tick` throws. */
  unexpected(error: Error): void;
}

export class RunTicker {
  private readonly runs = new Set<Ticking>();
  private timer: NodeJS.Timeout | undefined;
  private isTicking = false;
  private count = 0;

  /** `run` ticks four times a second until it is removed, and once a second while it rests. */
  add(run: Ticking): void {
    this.runs.add(run);
    this.timer ??= setInterval(() => contain("the clock of all jobs", () => this.tickAll()), TICK_MS);
  }

  /** May be repeated. */
  remove(run: Ticking): void {
    this.runs.delete(run);
    if (this.runs.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  /** Each run ticks once, unless it rests. Does nothing while an earlier call has not finished. */
  async tickAll(): Promise<void> {
    if (this.isTicking) return;
    this.isTicking = true;
    const slices = new TimeSlices(SLICE_MS);
    const isForAll = this.count++ % RESTS === 0;
    for (const run of this.runs) {
      if (!isForAll && run.rests) continue;
      contain(
        "a job",
        () => run.tick(),
        (error) => run.unexpected(error),
      );
      if (slices.isOver) await slices.rest();
    }
    this.isTicking = false;
  }
}
