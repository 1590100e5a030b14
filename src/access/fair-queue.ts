/** What waits, by who sent it: each sender in turn is next, however much another one has sent. Pure. */
export class FairQueue<T> {
  private readonly mostOfSender: number;
  /** Senders in the order of their turns; each has something waiting. */
  private readonly bySender = new Map<string, T[]>();

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

  /** The oldest of the sender whose turn it is; undefined if nothing waits. */
  shift(): T | undefined {
    const [next] = this.bySender;
    if (next === undefined) return undefined;
    const [sender, items] = next;
    const item = items.shift();
    this.bySender.delete(sender);
    if (items.length > 0) this.bySender.set(sender, items);
    return item;
  }
}
