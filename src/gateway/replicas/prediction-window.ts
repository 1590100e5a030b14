/** How many requests may be at a replica in advance, learned from how long its predictions take. Pure. */
import { PREDICTION_WINDOW_MAX } from "../../contracts/limits/predictions.ts";

const FAST_US = 1000;
/**
 * If predictions take less than this, the next request is sent before the response is back, so the replica need not
 * wait for it. No such request waits there longer than this.
 */
const PREFETCH_US = 10_000;
const PREFETCHED = 2;
/** A fast replica gets about this much work in advance. */
const WINDOW_WORK_US = 2000;

export class PredictionWindow {
  /** How many requests may be outstanding, however few the replica runs at once. */
  size = 1;
  /** How long a prediction takes, on average; undefined before the first. */
  private usualUs: number | undefined;

  get isFast(): boolean {
    return this.usualUs !== undefined && this.usualUs < FAST_US;
  }

  /** How long a prediction takes, on average, in milliseconds; 0 before the first. */
  get predictMs(): number {
    return (this.usualUs ?? 0) / 1000;
  }

  /** A prediction took so long. */
  learn(predictUs: number): void {
    const before = this.usualUs ?? predictUs;
    const usualUs = before + (predictUs - before) / 8;
    this.usualUs = usualUs;
    if (usualUs >= PREFETCH_US) this.size = 1;
    else if (usualUs >= FAST_US) this.size = PREFETCHED;
    else this.size = Math.min(PREDICTION_WINDOW_MAX, Math.ceil(WINDOW_WORK_US / (usualUs + 1)));
  }

  /** The next connection begins with a small window. */
  shrink(): void {
    this.size = 1;
  }
}
