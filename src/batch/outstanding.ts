/** The deliveries at one worker, in the order in which they went out; a queue with room to give some back. */
export class Outstanding {
  private deliveries: number[] = [];
  private batches: number[] = [];
  private head = 0;
  private nextDelivery = 1;

  get count(): number {
    return this.batches.length - this.head;
  }

  /** The number that the next delivery will have. */
  get next(): number {
    return this.nextDelivery;
  }

  push(batchIndex: number): number {
    const delivery = this.nextDelivery++;
    this.deliveries.push(delivery);
    this.batches.push(batchIndex);
    return delivery;
  }

  /** Takes the oldest delivery if it is not above `upTo`. */
  shiftUpTo(upTo: number): { delivery: number; batchIndex: number } | undefined {
    if (this.count === 0 || this.deliveries[this.head]! > upTo) return undefined;
    const taken = { delivery: this.deliveries[this.head]!, batchIndex: this.batches[this.head]! };
    if (++this.head === 4096) {
      this.deliveries.splice(0, this.head);
      this.batches.splice(0, this.head);
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
    return this.batches.splice(from, to - from);
  }

  takeAll(): number[] {
    const batches = this.batches.slice(this.head);
    this.deliveries = [];
    this.batches = [];
    this.head = 0;
    return batches;
  }
}
