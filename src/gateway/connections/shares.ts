/** What each owner holds, and who holds most. Cheap: only the few with more than a share are compared. Pure. */
export class Shares {
  private readonly share: number;
  private readonly held = new Map<string, number>();
  private readonly large = new Set<string>();

  constructor(share: number) {
    this.share = share;
  }

  /** `amount` may be negative. */
  add(owner: string, amount: number): void {
    const now = this.of(owner) + amount;
    if (now === 0) this.held.delete(owner);
    else this.held.set(owner, now);
    if (now > this.share) this.large.add(owner);
    else this.large.delete(owner);
  }

  of(owner: string): number {
    return this.held.get(owner) ?? 0;
  }

  /** Who holds most; undefined if nobody holds more than the share. */
  get largest(): string | undefined {
    let largest: string | undefined;
    for (const owner of this.large)
      if (largest === undefined || this.of(owner) > this.of(largest)) largest = owner;
    return largest;
  }
}
