/**
 * Measures how long this process keeps its clients waiting: the delay of its event loop while there is work. Node
 * measures it with a timer, which would wake an idle process. So it runs only from a request until the process has been
 * idle for a while.
 */
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { every } from "../base/loop/pulse.ts";
import type { LoopDelay } from "../contracts/reports.ts";

/** How often the timer fires. The measured time of a step is too short by up to this much. */
const RESOLUTION_MS = 20;
const TICK_MS = 1_000;
/** The timer stops after this long without a request. */
const IDLE_MS = 10_000;
const WINDOW_MS = 60_000;

interface Window {
  p99_ms: number;
  max_ms: number;
  endedMs: number;
}

export interface LoopDelayOptions {
  /** Whether there is work although no request comes. */
  isBusy?: () => boolean;
  /** The process has got work, or has been idle for a while. */
  onChange?: (isBusy: boolean) => void;
}

export class LoopDelayMeter {
  private readonly histogram: IntervalHistogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  private readonly isBusy: () => boolean;
  private readonly onChange: (isBusy: boolean) => void;
  /** Undefined while the process is idle. */
  private end: (() => void) | undefined;
  private isTouched = false;
  private touchedMs = 0;
  private windowStartMs = 0;
  private former: Window = { p99_ms: 0, max_ms: 0, endedMs: Number.NEGATIVE_INFINITY };
  private longestMs = 0;

  constructor({ isBusy = () => false, onChange = () => {} }: LoopDelayOptions = {}) {
    this.isBusy = isBusy;
    this.onChange = onChange;
  }

  /** A request has come. */
  touch(): void {
    this.isTouched = true;
    if (this.end === undefined) this.begin();
  }

  /** The delay in the last one or two minutes, and the longest since the start. */
  read(): LoopDelay {
    const nowMs = performance.now();
    const current = this.current(nowMs);
    const recent = [this.former, current].filter(({ endedMs }) => nowMs - endedMs < WINDOW_MS);
    return {
      p99_ms: Math.max(0, ...recent.map(({ p99_ms }) => p99_ms)),
      max_ms: Math.max(0, ...recent.map(({ max_ms }) => max_ms)),
      longest_ms: Math.max(this.longestMs, current.max_ms),
    };
  }

  stop(): void {
    if (this.end === undefined) return;
    this.end();
    this.end = undefined;
    this.endWindow(performance.now());
    this.histogram.disable();
    this.onChange(false);
  }

  private begin(): void {
    // Without the reset, Node would count the time since the timer last ran.
    this.histogram.enable();
    this.histogram.reset();
    this.windowStartMs = this.touchedMs = performance.now();
    this.end = every(TICK_MS, "the delay of the event loop", () => this.tick(performance.now()));
    this.onChange(true);
  }

  private tick(nowMs: number): void {
    if (this.isTouched || this.isBusy()) this.touchedMs = nowMs;
    this.isTouched = false;
    if (nowMs - this.windowStartMs >= WINDOW_MS) this.endWindow(nowMs);
    if (nowMs - this.touchedMs >= IDLE_MS) this.stop();
  }

  private endWindow(nowMs: number): void {
    this.former = this.current(nowMs);
    this.longestMs = Math.max(this.longestMs, this.former.max_ms);
    this.histogram.reset();
    this.windowStartMs = nowMs;
  }

  private current(endedMs: number): Window {
    const { histogram } = this;
    if (histogram.count === 0) return { p99_ms: 0, max_ms: 0, endedMs };
    return { p99_ms: delayMs(histogram.percentile(99)), max_ms: delayMs(histogram.max), endedMs };
  }
}

/** Node records the interval between two firings; what exceeds RESOLUTION_MS is delay. In tenths of a millisecond. */
function delayMs(intervalNs: number): number {
  return Math.max(0, Math.round((intervalNs / 1e6 - RESOLUTION_MS) * 10) / 10);
}
