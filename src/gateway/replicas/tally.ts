/** Counts the requests to one API since this gateway started. On the hot path: no allocation per request. */
import {
  addClass,
  DURATION_BOUNDS_S,
  emptyTally,
  finite,
  type Histogram,
  type Tally,
} from "../../contracts/reports.ts";
import type { AnswerHead } from "../../protocol/messages.ts";

export class RequestTally {
  private readonly counted = emptyTally();
  private readonly classes = new Map<string, number>();

  get counts(): Tally {
    return { ...this.counted, classes: [...this.classes] };
  }

  /** `status` is 0 if the client left before the response. */
  answered(status: number, tookMs: number): void {
    const { answers, duration } = this.counted;
    add(answers, status === 0 ? "left" : status < 300 ? "2xx" : status < 500 ? "4xx" : "5xx");
    observe(duration, tookMs / 1000);
  }

  /** A replica was given the request. */
  began(waitedMs: number): void {
    observe(this.counted.wait, waitedMs / 1000);
  }

  /** `code`: of an error that is Quern's own. */
  rejected(code: string): void {
    add(this.counted.rejected, code);
  }

  /** Counts a prediction's classes or values, if the API is monitored. */
  predicted({ classes, values, class_counts, value_sum }: AnswerHead): void {
    if (classes !== undefined) for (const name of classes) addClass(this.classes, name, 1);
    if (values !== undefined) for (const value of values) this.countValue(value);
    if (class_counts !== undefined)
      for (const [name, count] of class_counts) addClass(this.classes, name, count);
    if (value_sum !== undefined) this.addValues(value_sum);
  }

  /** An integer of 400 digits is infinite here, and cannot be averaged. */
  private countValue(value: number): void {
    if (!Number.isFinite(value)) return;
    this.addValues({ count: 1, sum: value, least: value, most: value });
  }

  private addValues({ count, sum, least, most }: NonNullable<Tally["values"]>): void {
    const known = this.counted.values;
    if (known === null) {
      this.counted.values = { count, sum, least, most };
      return;
    }
    known.count += count;
    known.sum = finite(known.sum + sum);
    known.least = Math.min(known.least, least);
    known.most = Math.max(known.most, most);
  }
}

/** `name` is one of Quern's words, never text from a client. */
function add(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

function observe(histogram: Histogram, seconds: number): void {
  let bucket = 0;
  while (bucket < DURATION_BOUNDS_S.length && seconds > DURATION_BOUNDS_S[bucket]!) bucket++;
  histogram.buckets[bucket]!++;
  histogram.sum_s += seconds;
}
