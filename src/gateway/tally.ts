/** Counts the requests to one API, since this gateway started. On the hot path: no allocation a request. */
import { CLASSES_COUNTED_MAX } from "../contracts/limits.ts";
import { DURATION_BOUNDS_S, emptyTally, type Histogram, type Tally } from "../contracts/reports.ts";
import type { AnswerHead } from "../protocol/messages.ts";

/** Classes behind the first CLASSES_COUNTED_MAX. */
const OTHERS = "(others)";

export class RequestTally {
  readonly counts: Tally = emptyTally();

  /** `status` is 0 where the client left before the answer. */
  answered(status: number, tookMs: number): void {
    const { answers, duration } = this.counts;
    add(answers, status === 0 ? "left" : status < 300 ? "2xx" : status < 500 ? "4xx" : "5xx");
    observe(duration, tookMs / 1000);
  }

  /** A replica was given the request. */
  began(waitedMs: number): void {
    observe(this.counts.wait, waitedMs / 1000);
  }

  rejected(code: string): void {
    add(this.counts.rejected, code);
  }

  /** What a prediction counts as, where the API is monitored. */
  predicted({ classes, values }: AnswerHead): void {
    for (const name of classes ?? []) this.countClass(name);
    for (const value of values ?? []) this.countValue(value);
  }

  private countClass(name: string): void {
    const { classes } = this.counts;
    const isKnown = classes[name] !== undefined;
    add(classes, isKnown || Object.keys(classes).length < CLASSES_COUNTED_MAX ? name : OTHERS);
  }

  private countValue(value: number): void {
    const known = this.counts.values;
    if (known === null) {
      this.counts.values = { count: 1, sum: value, least: value, most: value };
      return;
    }
    known.count++;
    known.sum += value;
    known.least = Math.min(known.least, value);
    known.most = Math.max(known.most, value);
  }
}

function add(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

function observe(histogram: Histogram, seconds: number): void {
  let bucket = 0;
  while (bucket < DURATION_BOUNDS_S.length && seconds > DURATION_BOUNDS_S[bucket]!) bucket++;
  histogram.buckets[bucket]!++;
  histogram.sum_s += seconds;
}
