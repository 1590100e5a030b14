/** The clock of all runs of jobs: one timer, whose work is cut into slices. Thousands of runs may wait. */
import { contain } from "../base/boundary.ts";
import { TimeSlices } from "../base/clock.ts";
import { SLICE_MS } from "../contracts/limits/event-loop.ts";

const TICK_MS = 250;

export interface Ticking {
  tick(): void;
  /** Receives what `tick` throws. */
  unexpected(error: Error): void;
}

export class RunTicker {
  private readonly runs = new Set<Ticking>();
  private timer: NodeJS.Timeout | undefined;
  private isTicking = false;

  /** `run` ticks four times a second until it is removed. */
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

  /** Each run ticks once. Does nothing while an earlier call has not finished. */
  async tickAll(): Promise<void> {
    if (this.isTicking) return;
    this.isTicking = true;
    const slices = new TimeSlices(SLICE_MS);
    for (const run of this.runs) {
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
