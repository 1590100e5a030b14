/** The requests of one API in the last minutes: five seconds a slot for rates, and a count for each minute. Pure. */
import { type Counts, percentile, threeDigits } from "./counts.ts";

const SLOT_MS = 5_000;
/** A minute: the slot that is being filled, and those before it. */
const SLOTS = 12;
const MINUTE_MS = 60_000;
export const MINUTES = 30;

interface Slot {
  at: number;
  requests: number;
  errors: number;
  buckets: number[];
}

export interface TrafficRates {
  requests_per_s: number;
  errors_per_s: number;
  latency_p50_s: number | null;
  latency_p99_s: number | null;
  recent: number[];
}

export class TrafficOfApi {
  /** When it had its last request. */
  lastMs: number;
  private slots: Slot[] = [];
  /** By the number of the minute. */
  private readonly minutes = new Map<number, number>();

  constructor(nowMs: number) {
    this.lastMs = nowMs;
  }

  /** Adds what `now` has more than `before`. */
  add(now: Counts, before: Counts | undefined, nowMs: number): void {
    const requests = now.requests - (before?.requests ?? 0);
    const slot = this.slotAt(Math.floor(nowMs / SLOT_MS), now.buckets.length);
    slot.requests += requests;
    slot.errors += Math.max(0, now.errors - (before?.errors ?? 0));
    for (const [i, count] of now.buckets.entries())
      slot.buckets[i]! += Math.max(0, count - (before?.buckets[i] ?? 0));
    const minute = Math.floor(nowMs / MINUTE_MS);
    this.minutes.set(minute, (this.minutes.get(minute) ?? 0) + requests);
    for (const at of this.minutes.keys()) if (at <= minute - MINUTES) this.minutes.delete(at);
    this.lastMs = nowMs;
  }

  /** `forMs`: for how long requests are counted at all. */
  read(nowMs: number, forMs: number): TrafficRates {
    const newest = Math.floor(nowMs / SLOT_MS);
    const slots = this.slots.filter(({ at }) => at > newest - SLOTS);
    const seconds = Math.max(1_000, Math.min(forMs, (SLOTS - 1) * SLOT_MS + (nowMs % SLOT_MS))) / 1000;
    const sum = (of: (slot: Slot) => number) => slots.reduce((total, slot) => total + of(slot), 0);
    const buckets =
      slots.length === 0 ? [] : slots[0]!.buckets.map((_, i) => sum((slot) => slot.buckets[i]!));
    const minute = Math.floor(nowMs / MINUTE_MS);
    return {
      requests_per_s: threeDigits(sum((slot) => slot.requests) / seconds),
      errors_per_s: threeDigits(sum((slot) => slot.errors) / seconds),
      latency_p50_s: percentile(buckets, 0.5),
      latency_p99_s: percentile(buckets, 0.99),
      recent: Array.from({ length: MINUTES }, (_, i) => this.minutes.get(minute - MINUTES + 1 + i) ?? 0),
    };
  }

  private slotAt(at: number, buckets: number): Slot {
    const last = this.slots.at(-1);
    if (last?.at === at) return last;
    const slot = { at, requests: 0, errors: 0, buckets: new Array<number>(buckets).fill(0) };
    this.slots = [...this.slots.filter((each) => each.at > at - SLOTS), slot];
    return slot;
  }
}
