/** How many batches may be at one worker: about LEASED_WORK_US of work, and one until a duration is known. */
import { CREDIT_BATCHES_MAX, LEASED_WORK_US } from "../../contracts/limits/jobs.ts";

const GROWTH_MAX = 8;

export class Credit {
  batches = 1;
  private predictUs: number | undefined;

  /** Learns from an acknowledgement of `count` batches that took `totalUs` in predict(). */
  learn(count: number, totalUs: number): void {
    if (count === 0) return;
    const mean = totalUs / count;
    this.predictUs = this.predictUs === undefined ? mean : (this.predictUs + mean) / 2;
    const wanted = Math.floor(LEASED_WORK_US / Math.max(1, this.predictUs));
    this.batches = Math.max(1, Math.min(wanted, this.batches * GROWTH_MAX, CREDIT_BATCHES_MAX));
  }
}
