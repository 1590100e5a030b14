/**
 * The deliveries at one worker, in the order in which they went out: a queue that can also give back some from its
 * middle.
 */
export class Outstanding {
  /** Bytes of their lease entries. */
  bytes = 0;
  private deliveries: number[] = [];
  private batches: number[] = [];
  private sizes: number[] = [];
  private head = 0;
  private nextDelivery = 1;

  get count(): number {
    return this.batches.length - this.head;
  }

  /** The batch of the oldest delivery. */
  get oldest(): number | undefined {
    return this.batches[this.head];
  }

  /** The number that the next delivery will have. */
  get next(): number {
    return this.nextDelivery;
  }

  push(batchIndex: number, bytes: number): number {
    const delivery = this.nextDelivery++;
    this.deliveries.push(delivery);
    this.batches.push(batchIndex);
    this.sizes.push(bytes);
    this.bytes += bytes;
    return delivery;
  }

  /** Whether the oldest `count` deliveries end with `upTo`. */
  endsAt(upTo: number, count: number): boolean {
    return count > 0 && count <= this.count && this.deliveries[this.head + count - 1] === upTo;
  }

  has(delivery: number): boolean {
    let low = this.head;
    for (let high = this.deliveries.length; low < high; ) {
      const middle = (low + high) >> 1;
      if (this.deliveries[middle]! < delivery) low = middle + 1;
      else high = middle;
    }
    return this.deliveries[low] === delivery;
  }

  /** Takes the oldest delivery if it is not above `upTo`. */
  shiftUpTo(upTo: number): { delivery: number; batchIndex: number } | undefined {
    if (this.count === 0 || this.deliveries[this.head]! > upTo) return undefined;
    const taken = { delivery: this.deliveries[this.head]!, batchIndex: this.batches[this.head]! };
    this.bytes -= this.sizes[this.head]!;
    if (++this.head === 4096) {
      for (const column of [this.deliveries, this.batches, this.sizes]) column.splice(0, this.head);
      this.head = 0;
    }
    return taken;
  }

  /** Drops deliveries that no longer count. */
  dropUpTo(upTo: number): void {
    while (this.shiftUpTo(upTo) !== undefined);
  }

  /**
   * Takes the deliveries `first` to `last` and returns their batches, in order. Undefined, and none is taken, if any is
   * missing.
   */
  takeRange(first: number, last: number): number[] | undefined {
    const from = this.deliveries.findIndex((delivery, i) => i >= this.head && delivery >= first);
    const to = from + last - first + 1;
    if (last < first || from < 0 || this.deliveries[from] !== first || this.deliveries[to - 1] !== last)
      return undefined;
    this.deliveries.splice(from, to - from);
    for (const bytes of this.sizes.splice(from, to - from)) this.bytes -= bytes;
    return this.batches.splice(from, to - from);
  }

  takeAll(): number[] {
    const batches = this.batches.slice(this.head);
    for (const column of [this.deliveries, this.batches, this.sizes]) column.length = 0;
    this.head = 0;
    this.bytes = 0;
    return batches;
  }
}
