/** What waits, by owner: the next one is of the owner that has cost least lately. Equal ones alternate. Pure. */
import TinyQueue from "tinyqueue";
import type { OwnerCosts } from "./owner-costs.ts";

interface Place {
  owner: string;
  /** When the owner got this place. */
  cost: number;
  order: number;
}

export class CheapestFirst<T> {
  private readonly costs: OwnerCosts;
  private readonly byOwner = new Map<string, T[]>();
  /** One for each owner with something waiting. */
  private readonly places = new TinyQueue<Place>([], (a, b) =>
    a.cost === b.cost ? a.order - b.order : a.cost - b.cost,
  );
  private order = 0;

  constructor(costs: OwnerCosts) {
    this.costs = costs;
  }

  push(owner: string, item: T): void {
    const items = this.byOwner.get(owner);
    if (items !== undefined) items.push(item);
    else {
      this.byOwner.set(owner, [item]);
      this.place(owner);
    }
  }

  /** Undefined if nothing waits. */
  shift(): T | undefined {
    const owner = this.next();
    if (owner === undefined) return undefined;
    const items = this.byOwner.get(owner)!;
    const item = items.shift();
    if (items.length === 0) this.byOwner.delete(owner);
    else this.place(owner);
    return item;
  }

  /** Takes the owner whose turn it is from its place. */
  private next(): string | undefined {
    for (let place = this.places.pop(); place !== undefined; place = this.places.pop()) {
      if (this.costs.of(place.owner) === place.cost) return place.owner;
      // It has cost more since it got this place.
      this.place(place.owner);
    }
    return undefined;
  }

  private place(owner: string): void {
    this.places.push({ owner, cost: this.costs.of(owner), order: this.order++ });
  }
}
