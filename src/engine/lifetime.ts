/** How long a worker may start, and when it is replaced (docs/contract/predictor.md#start-and-life). */
import { processAgeMs } from "../base/process-identity.ts";
import type { WorkerFault } from "../protocol/messages.ts";
import type { WorkerIdentity } from "./engine.ts";

/** The type of the fault of a worker that took too long to start. */
export const START_TIMEOUT = "StartTimeout";
/** How often a start that takes long is logged. */
const LOGGED_EACH_MS = 10_000;

export interface Lifetime {
  /** `predictor.startup_timeout` in milliseconds, and as it was written. */
  startup: { ms: number; text: string };
  /** `predictor.max_requests`: predictions, or batches of a job; undefined is any number. */
  maxRequests: number | undefined;
  /** `predictor.max_age` in milliseconds; undefined is any age. */
  maxAgeMs: number | undefined;
}

/** How long the worker's process has run, in milliseconds. One whose start cannot be told begins now. */
export function ageMsOf({ process_start }: WorkerIdentity): number {
  return processAgeMs(process_start) ?? 0;
}

/** When a worker of a job is replaced. */
export class Wear {
  private readonly lifetime: Lifetime;
  private readonly begunMs = performance.now();
  /** Batches of former jobs. */
  private former = 0;

  /** The worker has just been started. */
  constructor(lifetime: Lifetime) {
    this.lifetime = lifetime;
  }

  /** A job has ended in which it got so many batches. */
  add(batches: number): void {
    this.former += batches;
  }

  /** How many batches it may still get after so many of its job: none once it is too old and has done one. */
  leftAfter(ofJob: number): number {
    const batches = this.former + ofJob;
    const { maxRequests = Number.POSITIVE_INFINITY, maxAgeMs } = this.lifetime;
    const isTooOld = batches > 0 && maxAgeMs !== undefined && performance.now() - this.begunMs >= maxAgeMs;
    return isTooOld ? 0 : maxRequests - batches;
  }
}

export interface StartEvents {
  /** It has been starting for so many seconds. */
  onLong(seconds: number): void;
  /** It has taken longer than it may. */
  onTimeout(fault: WorkerFault): void;
}

/** Follows a worker from the start of its process until `end`. */
export class StartWatch {
  private readonly startup: Lifetime["startup"];
  private readonly events: StartEvents;
  private readonly begunMs: number;
  private readonly limitMs: number;
  private timer: NodeJS.Timeout | undefined;

  /** `ageMs`: how long its process has run already. `leastMs`: how long it may take from now on in any case. */
  constructor(startup: Lifetime["startup"], ageMs: number, events: StartEvents, leastMs = 0) {
    this.startup = startup;
    this.events = events;
    this.limitMs = Math.max(startup.ms, ageMs + leastMs);
    this.begunMs = performance.now() - ageMs;
    this.wait();
  }

  /** The worker is ready, or gone. Returns how many milliseconds it took. */
  end(): number {
    clearTimeout(this.timer);
    return performance.now() - this.begunMs;
  }

  private wait(): void {
    const takenMs = performance.now() - this.begunMs;
    const leftMs = Math.max(0, this.limitMs - takenMs);
    this.timer = setTimeout(() => this.check(), Math.min(leftMs, LOGGED_EACH_MS)).unref();
  }

  private check(): void {
    const takenMs = performance.now() - this.begunMs;
    if (takenMs >= this.limitMs) return this.events.onTimeout(tookTooLong(this.startup.text));
    this.events.onLong(Math.round(takenMs / 1_000));
    this.wait();
  }
}

function tookTooLong(startupTimeout: string): WorkerFault {
  return {
    stage: "init",
    type: START_TIMEOUT,
    message: `the worker was not ready after ${startupTimeout} and was killed; if __init__ needs longer, set predictor.startup_timeout`,
    traceback: "",
  };
}
