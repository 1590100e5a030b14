/** The deliveries at one worker, in the order in which they went out; a queue with room to give some back. */
export class Outstanding {
  /** Payload bytes of all of them. */
  bytes = 0;
  private deliveries: number[] = [];
  private batches: number[] = [];
  private sizes: number[] = [];
  private head = 0;
  private nextDelivery = 1;

  get count(): number {
    return this.batches.length - this.head;
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

  /** Takes the deliveries from `first` to `last` out of the middle or the end; their batches, in order. */
  takeRange(first: number, last: number): number[] {
    const from = this.deliveries.findIndex((delivery, i) => i >= this.head && delivery >= first);
    if (from < 0) return [];
    let to = from;
    while (to < this.deliveries.length && this.deliveries[to]! <= last) to++;
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
