/**
 * The connections that the parent has accepted, and that no gateway has received yet: one queue for each gateway. It
 * decides which gateway gets a connection, which connection is next, and which listeners may accept more. Pure.
 */
import { FairQueue } from "../base/fair/fair-queue.ts";

interface Accepted {
  /** The number of the listener that accepted it. */
  listener: number;
  /** Whom its client's address counts as. */
  owner: string;
}

interface Queue<Connection> {
  /**
   * By listener, the one whose turn it is first: many connections to one do not hold back those to another. Those to a
   * listener are by owner in turn.
   */
  queued: Map<number, FairQueue<Connection>>;
  /** The one that the gateway is being given. It may have it already. */
  given: Connection | undefined;
  /** By listener. `given` counts. */
  counts: Map<number, number>;
}

export class ConnectionQueues<Gateway, Connection extends Accepted> {
  private readonly most: number;
  private readonly queues = new Map<Gateway, Queue<Connection>>();
  /** Those that no gateway has a place for, because one has ended or does not respond. They come first. */
  private waiting: Connection[] = [];
  private dealt = 0;

  /** `most` is for each gateway and listener. */
  constructor(most: number) {
    this.most = most;
  }

  /** Whether a gateway has a place for another connection of this listener. */
  mayAccept(listener: number, ready: readonly Gateway[]): boolean {
    return (
      !this.waiting.some((connection) => connection.listener === listener) &&
      ready.some((gateway) => this.hasPlace(gateway, listener))
    );
  }

  /** Adds it to the queue of the gateway whose turn it is, of those that have a place. */
  add(connection: Connection, ready: readonly Gateway[]): void {
    const gateway = this.nextInTurn(connection.listener, ready);
    if (gateway === undefined) this.waiting.push(connection);
    else this.enqueue(gateway, connection);
  }

  /** Deals again what is in the queues of gateways that are not ready. What a gateway is being given stays with it. */
  dealAgain(ready: readonly Gateway[]): void {
    for (const [gateway, queue] of this.queues)
      if (!ready.includes(gateway)) this.waiting.push(...this.drain(queue));
    for (const connection of this.waiting.splice(0)) this.add(connection, ready);
  }

  /** What the gateway is to be given now. Undefined if it has not received the last one yet, or if there is none. */
  next(gateway: Gateway): Connection | undefined {
    const queue = this.queues.get(gateway);
    if (queue === undefined || queue.given !== undefined) return undefined;
    queue.given = shift(queue);
    return queue.given;
  }

  /** The gateway has received it. False if the gateway was forgotten before, so that another one gets it. */
  received(gateway: Gateway, connection: Connection): boolean {
    const queue = this.queues.get(gateway);
    if (queue?.given !== connection) return false;
    queue.given = undefined;
    count(queue, connection, -1);
    return true;
  }

  /** The gateway has ended. `dealAgain` gives its connections to others. */
  forget(gateway: Gateway): void {
    const queue = this.queues.get(gateway);
    if (queue === undefined) return;
    this.queues.delete(gateway);
    if (queue.given !== undefined) this.waiting.push(queue.given);
    this.waiting.push(...this.drain(queue));
  }

  /** Whether a connection of any of these listeners has been received by no gateway yet. */
  holds(listeners: readonly number[]): boolean {
    return listeners.some(
      (listener) =>
        this.waiting.some((connection) => connection.listener === listener) ||
        [...this.queues.values()].some(({ counts }) => (counts.get(listener) ?? 0) > 0),
    );
  }

  /** Removes and returns those that are not being given to any gateway. */
  clear(): Connection[] {
    return [...this.waiting.splice(0), ...[...this.queues.values()].flatMap((queue) => this.drain(queue))];
  }

  private nextInTurn(listener: number, ready: readonly Gateway[]): Gateway | undefined {
    for (const _ of ready) {
      const gateway = ready[this.dealt++ % ready.length]!;
      if (this.hasPlace(gateway, listener)) return gateway;
    }
    return undefined;
  }

  private hasPlace(gateway: Gateway, listener: number): boolean {
    return (this.queues.get(gateway)?.counts.get(listener) ?? 0) < this.most;
  }

  private enqueue(gateway: Gateway, connection: Connection): void {
    let queue = this.queues.get(gateway);
    if (queue === undefined) {
      queue = { queued: new Map(), given: undefined, counts: new Map() };
      this.queues.set(gateway, queue);
    }
    const { listener, owner } = connection;
    const ofListener = queue.queued.get(listener) ?? new FairQueue(Number.POSITIVE_INFINITY);
    ofListener.push(owner, connection);
    queue.queued.set(listener, ofListener);
    count(queue, connection, 1);
  }

  private drain(queue: Queue<Connection>): Connection[] {
    const drained: Connection[] = [];
    for (let next = shift(queue); next !== undefined; next = shift(queue)) {
      count(queue, next, -1);
      drained.push(next);
    }
    return drained;
  }
}

/** The listener that has had its turn is the last one then. */
function shift<Connection extends Accepted>({ queued }: Queue<Connection>): Connection | undefined {
  for (const [listener, ofListener] of queued) {
    const next = ofListener.shift();
    if (next === undefined) continue;
    queued.delete(listener);
    queued.set(listener, ofListener);
    return next;
  }
  return undefined;
}

function count<Connection extends Accepted>(
  { counts }: Queue<Connection>,
  { listener }: Connection,
  by: number,
): void {
  counts.set(listener, (counts.get(listener) ?? 0) + by);
}
