/**
 * Limits how many requests a key may make, in fixed windows that each begin with a request. Each gateway counts its
 * share of the limit.
 */
import type { KeyRate } from "../../contracts/keys.ts";

/** When there are this many windows, those that are over are dropped. */
const WINDOWS_MAX = 10_000;

interface Window {
  untilMs: number;
  used: number;
}

export interface RateState {
  limit: number;
  remaining: number;
  /** Seconds until the window is over. */
  resetS: number;
  isAllowed: boolean;
}

export class RateLimits {
  private readonly windows = new Map<string, Window>();
  private readonly gateways: number;

  /** `gateways`: how many gateways share the load, this one included. */
  constructor(gateways: number) {
    this.gateways = gateways;
  }

  /** Counts a request of the key `id`. */
  take(id: string, { requests, seconds }: KeyRate, nowMs: number): RateState {
    const limit = Math.ceil(requests / this.gateways);
    let window = this.windows.get(id);
    if (window === undefined || window.untilMs <= nowMs) {
      if (this.windows.size >= WINDOWS_MAX) this.forgetOver(nowMs);
      window = { untilMs: nowMs + seconds * 1000, used: 0 };
      this.windows.set(id, window);
    }
    const isAllowed = window.used < limit;
    if (isAllowed) window.used++;
    const resetS = Math.ceil((window.untilMs - nowMs) / 1000);
    return { limit, remaining: limit - window.used, resetS, isAllowed };
  }

  private forgetOver(nowMs: number): void {
    for (const [id, { untilMs }] of this.windows) if (untilMs <= nowMs) this.windows.delete(id);
  }
}
