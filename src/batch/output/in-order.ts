/** Which batches are settled, in order: how far the output can be written without a gap. */
export class InOrder {
  /** The first batch that is not settled. All before it are. */
  next = 0;
  private readonly total: number;
  private readonly bits: Uint8Array;

  constructor(totalBatches: number) {
    this.total = totalBatches;
    this.bits = new Uint8Array(Math.ceil(totalBatches / 8));
  }

  get isComplete(): boolean {
    return this.next >= this.total;
  }

  has(batchIndex: number): boolean {
    return (this.bits[batchIndex >> 3]! & (1 << (batchIndex & 7))) !== 0;
  }

  /** Settles a batch. */
  add(batchIndex: number): void {
    this.bits[batchIndex >> 3]! |= 1 << (batchIndex & 7);
    if (batchIndex === this.next) this.advance();
  }

  /** Settles the batches of a bitmap whose first bit is `firstBatch`, lowest bit first. */
  addAll(firstBatch: number, count: number, settled: Uint8Array): void {
    for (let bit = 0; bit < count; bit++)
      if ((settled[bit >> 3]! & (1 << (bit & 7))) !== 0) this.add(firstBatch + bit);
  }

  private advance(): void {
    const { bits, total } = this;
    while (this.next < total) {
      const byte = bits[this.next >> 3]!;
      if (byte === 0xff && (this.next & 7) === 0) this.next += 8;
      else if ((byte & (1 << (this.next & 7))) !== 0) this.next++;
      else return;
    }
    this.next = total;
  }
}
