/** How much each owner holds of something, and how much it may hold. Pure. */
export class Shares {
  private readonly held = new Map<string, number>();
  private readonly share: number;

  /** An owner may hold `share` times as much as stays free for others. */
  constructor(share: number) {
    this.share = share;
  }

  /** `left`: what is free after it. An owner that holds nothing gets its first body, however large it is. */
  fits(name: string, bytes: number, left: number): boolean {
    const has = this.held.get(name);
    return has === undefined || has + bytes <= this.share * left;
  }

  add(name: string, bytes: number): void {
    const has = (this.held.get(name) ?? 0) + bytes;
    if (has > 0) this.held.set(name, has);
    else this.held.delete(name);
  }
}
