/** Decides where parts end: pure. */
import { PART_BYTES } from "../../contracts/limits/outputs.ts";

/** Batches that become one part: from `first` to the one before `next`. */
export interface PartRange {
  first: number;
  next: number;
  /** Of their rows. */
  bytes: number;
}

/** Collects settled batches in order, until they are enough for a part. */
export class PartSizes {
  private first: number;
  private next: number;
  private bytes = 0;

  /** `first`: the first batch that is in no part yet. */
  constructor(first: number) {
    this.first = first;
    this.next = first;
  }

  /** The next batch to add. */
  get added(): number {
    return this.next;
  }

  /** Adds a batch by the bytes of its rows. Returns a part if that is full now. */
  add(bytes: number): PartRange | undefined {
    this.next++;
    this.bytes += bytes;
    return this.bytes >= PART_BYTES ? this.cut() : undefined;
  }

  /** What is left when there are no more batches; undefined if that has no rows. */
  last(): PartRange | undefined {
    return this.bytes > 0 ? this.cut() : undefined;
  }

  private cut(): PartRange {
    const range = { first: this.first, next: this.next, bytes: this.bytes };
    this.first = this.next;
    this.bytes = 0;
    return range;
  }
}
