/** The requests of one API in the last minutes: five seconds a slot for rates, and counts for each minute. Pure. */
import { type Counts, percentile, type Totals, threeDigits } from "./counts.ts";

const SLOT_MS = 5_000;
/** A minute: the slot that is being filled, and those before it. */
const SLOTS = 12;
const MINUTE_MS = 60_000;
/** Each gateway reports once a second: for so long, reports may still have requests of the version before. */
const SETTLE_MS = 1_500;
/** So many requests since another version serves show whether it fails. */
const CLEAR_AFTER_REQUESTS = 10;
export const MINUTES = 30;

interface Sums {
  requests: number;
  errors: number;
  buckets: number[];
}

interface Slot extends Sums {
  at: number;
}

/** The newest errors. */
export interface LastErrors {
  /** When they were reported. */
  atMs: number;
  /** Requests since then, none of which failed. Those with a 4xx status count as well. */
  requestsSince: number;
}

/** The requests since one version alone serves, which another one did before. */
export interface SinceSwitch {
  atMs: number;
  /** Failures in reports that may have requests of both versions. Nothing else of these reports is counted here. */
  unclear: number;
  requests: number;
  /** Those that failed, without refusals of the gateway. */
  failed: number;
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
  /** Undefined if no request has failed since the controller started. */
  lastErrors: LastErrors | undefined;
  /** The same without refusals of the gateway: neither as errors nor as requests. */
  lastFailures: LastErrors | undefined;
  /** Undefined if the version has not changed since the controller started. */
  sinceSwitch: SinceSwitch | undefined;
  private served: string | undefined;
  private slots: Slot[] = [];
  /** By the number of the minute. */
  private readonly minutes = new Map<number, Sums>();

  constructor(nowMs: number) {
    this.lastMs = nowMs;
  }

  /** Adds what `now` has more than `before`. */
  add(now: Totals, before: Totals | undefined, nowMs: number): void {
    const grown = {
      requests: now.requests - (before?.requests ?? 0),
      errors: Math.max(0, now.errors - (before?.errors ?? 0)),
      buckets: now.buckets.map((count, i) => Math.max(0, count - (before?.buckets[i] ?? 0))),
    };
    addTo(this.slotAt(Math.floor(nowMs / SLOT_MS), now.buckets.length), grown);
    this.addMinute(Math.floor(nowMs / MINUTE_MS), grown);
    this.lastErrors = lastOf(this.lastErrors, grown.errors, grown.requests, nowMs);
    const others = Math.max(0, grown.requests - grown.errors);
    this.lastFailures = lastOf(this.lastFailures, now.failed, others, nowMs);
    this.lastMs = nowMs;
    const { sinceSwitch: since } = this;
    if (since === undefined) return;
    const isUnclear = nowMs - since.atMs < SETTLE_MS;
    this.sinceSwitch = isUnclear
      ? { ...since, unclear: since.unclear + now.failed }
      : { ...since, requests: since.requests + grown.requests, failed: since.failed + now.failed };
  }

  /** Notes which version alone serves. `failed`: those of the report that is the first to show it. */
  serves(version: string, nowMs: number, failed: number): void {
    if (this.served !== undefined && this.served !== version)
      this.sinceSwitch = { atMs: nowMs, unclear: failed, requests: 0, failed: 0 };
    this.served = version;
  }

  /** Adds a minute that is over, or the beginning of this one, from what is stored. */
  restore(counts: Counts, atMs: number): void {
    this.addMinute(Math.floor(atMs / MINUTE_MS), counts);
  }

  /** `forMs`: for how long requests are counted at all. */
  read(nowMs: number, forMs: number): TrafficRates {
    const newest = Math.floor(nowMs / SLOT_MS);
    const slots = this.slots.filter(({ at }) => at > newest - SLOTS);
    const seconds = Math.max(1_000, Math.min(forMs, (SLOTS - 1) * SLOT_MS + (nowMs % SLOT_MS))) / 1000;
    const sum = (of: (slot: Slot) => number) => slots.reduce((total, slot) => total + of(slot), 0);
    const buckets =
      slots.length === 0 ? [] : slots[0]!.buckets.map((_, i) => sum((slot) => slot.buckets[i]!));
    return {
      requests_per_s: threeDigits(sum((slot) => slot.requests) / seconds),
      errors_per_s: threeDigits(sum((slot) => slot.errors) / seconds),
      latency_p50_s: percentile(buckets, 0.5),
      latency_p99_s: percentile(buckets, 0.99),
      recent: this.newestMinutes(nowMs).map((minute) => minute?.requests ?? 0),
    };
  }

  /** How long the requests of each minute took, by bucket; those of minutes without a request are left out. */
  durations(nowMs: number): (readonly number[])[] {
    return this.newestMinutes(nowMs).flatMap((minute) => (minute === undefined ? [] : [minute.buckets]));
  }

  private newestMinutes(nowMs: number): (Sums | undefined)[] {
    const minute = Math.floor(nowMs / MINUTE_MS);
    return Array.from({ length: MINUTES }, (_, i) => this.minutes.get(minute - MINUTES + 1 + i));
  }

  private addMinute(minute: number, counts: Counts): void {
    const sums = this.minutes.get(minute) ?? empty(counts.buckets.length);
    this.minutes.set(minute, sums);
    addTo(sums, counts);
    for (const at of this.minutes.keys()) if (at <= minute - MINUTES) this.minutes.delete(at);
  }

  private slotAt(at: number, buckets: number): Slot {
    const last = this.slots.at(-1);
    if (last?.at === at) return last;
    const slot = { at, ...empty(buckets) };
    this.slots = [...this.slots.filter((each) => each.at > at - SLOTS), slot];
    return slot;
  }
}

/** Whether it is known which of the two versions the failures around a switch were of. */
export function isClear({ unclear, requests }: SinceSwitch): boolean {
  return unclear === 0 || requests >= CLEAR_AFTER_REQUESTS;
}

function lastOf(
  last: LastErrors | undefined,
  errors: number,
  requests: number,
  nowMs: number,
): LastErrors | undefined {
  if (errors > 0) return { atMs: nowMs, requestsSince: 0 };
  return last && { ...last, requestsSince: last.requestsSince + requests };
}

function empty(buckets: number): Sums {
  return { requests: 0, errors: 0, buckets: new Array<number>(buckets).fill(0) };
}

function addTo(sums: Sums, { requests, errors, buckets }: Counts): void {
  sums.requests += requests;
  sums.errors += errors;
  for (const [i, count] of buckets.entries()) sums.buckets[i]! += count;
}
