/**
 * An answer that is the same for all who ask, such as the metrics. It is computed once for all that wait, after they
 * asked. Then it rests, so that whoever asks again and again does not use the whole event loop.
 */
import { delay } from "../../base/clock.ts";

/** It rests this many times as long as it was computed: others have three quarters of the time. */
const RESTS = 3;
/** Waiting for the database is no work: the rest is never longer. */
const REST_MAX_MS = 250;

export class CoalescedAnswer<Answer> {
  private readonly compute: () => Promise<Answer>;
  /** The one that has not begun yet. */
  private next: Promise<Answer> | undefined;
  private former: Promise<unknown> = Promise.resolve();

  constructor(compute: () => Promise<Answer>) {
    this.compute = compute;
  }

  ask(): Promise<Answer> {
    this.next ??= this.afterFormer();
    return this.next;
  }

  private async afterFormer(): Promise<Answer> {
    await this.former;
    this.next = undefined;
    const startMs = performance.now();
    const answer = this.compute();
    this.former = answer.then(
      () => rest(startMs),
      () => rest(startMs),
    );
    return answer;
  }
}

function rest(startMs: number): Promise<void> {
  return delay(Math.min(REST_MAX_MS, RESTS * (performance.now() - startMs)));
}
