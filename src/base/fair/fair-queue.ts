/** What waits, by who sent it: each sender in turn is next, however much another one has sent. Pure. */
export class FairQueue<T> {
  private readonly mostOfSender: number;
  /** Senders in the order of their turns; each has something waiting. */
  private readonly bySender = new Map<string, T[]>();
  /** The sender whose turn was the last one. It is last again only in the next turn, after those that came meanwhile. */
  private last: string | undefined;

  constructor(mostOfSender: number) {
    this.mostOfSender = mostOfSender;
  }

  /** False if the sender has too much waiting. */
  push(sender: string, item: T): boolean {
    const items = this.bySender.get(sender);
    if (items === undefined) this.bySender.set(sender, [item]);
    else if (items.length >= this.mostOfSender) return false;
    else items.push(item);
    return true;
  }

  /** As the first of its sender, which may have more than its most waiting then. */
  putBack(sender: string, item: T): void {
    const items = this.bySender.get(sender);
    if (items === undefined) this.bySender.set(sender, [item]);
    else items.unshift(item);
  }

  get isEmpty(): boolean {
    return this.bySender.size === 0;
  }

  /** The oldest of the first sender in turn that may be next; undefined if none of these has something waiting. */
  shift(mayBeNext: (sender: string) => boolean = () => true): T | undefined {
    this.endTurn();
    const next = this.firstThat(mayBeNext);
    if (next === undefined) return undefined;
    const [sender, items] = next;
    this.last = sender;
    const item = items.shift();
    if (items.length === 0) this.bySender.delete(sender);
    return item;
  }

  /** Nothing waits for this item any more. */
  remove(sender: string, item: T): void {
    const items = this.bySender.get(sender);
    if (items === undefined || !items.includes(item)) return;
    items.splice(items.indexOf(item), 1);
    if (items.length === 0) this.bySender.delete(sender);
  }

  private firstThat(mayBeNext: (sender: string) => boolean): [string, T[]] | undefined {
    for (const next of this.bySender) if (mayBeNext(next[0])) return next;
    return undefined;
  }

  private endTurn(): void {
    const items = this.last === undefined ? undefined : this.bySender.get(this.last);
    if (items === undefined) return;
    this.bySender.delete(this.last!);
    this.bySender.set(this.last!, items);
  }
}
