/** The items of one batch, cut out of its JSON array: for the leases of its parts, and for their failures. */
import { elementSpans } from "../../base/json/spans.ts";
import { encodeLeasePart, LEASE_PART_HEADER_BYTES } from "../../protocol/lease-part.ts";
import { MESSAGE } from "../../protocol/messages.ts";
import type { LeaseEntries } from "../deliveries/lease-runs.ts";

const OPENING = Buffer.from("[");
const CLOSING = Buffer.from("]");

export class BatchItems {
  /** Where each item begins in the array, and where it ends. */
  private readonly starts: number[] = [];
  private readonly ends: number[] = [];
  private readonly array: Buffer;

  /** `array`: the batch's JSON array, which is kept. */
  constructor(array: Buffer) {
    this.array = array;
    for (const { start, end } of elementSpans(array, { start: 0, end: array.length })) {
      this.starts.push(start);
      this.ends.push(end);
    }
  }

  get count(): number {
    return this.starts.length;
  }

  /** The JSON array of the items from `first` to the one before `next`. */
  slice(first: number, next: number): Buffer {
    const items = this.array.subarray(this.starts[first], this.ends[next - 1]);
    return Buffer.concat([OPENING, items, CLOSING]);
  }

  /** The text of one item. */
  text(item: number): string {
    return this.array.toString("utf8", this.starts[item], this.ends[item]);
  }
}

/** A part of a batch, as a worker gets it. */
export class PartEntries implements LeaseEntries {
  readonly message = MESSAGE.LEASE_PART;
  private readonly items: Buffer;
  private readonly first: number;

  constructor(items: BatchItems, first: number, next: number) {
    this.items = items.slice(first, next);
    this.first = first;
  }

  entryBytes(): number {
    return LEASE_PART_HEADER_BYTES + this.items.length;
  }

  entries(batchIndex: number): Buffer {
    return encodeLeasePart(batchIndex, this.first, this.items);
  }
}
