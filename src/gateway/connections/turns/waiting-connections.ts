/**
 * Connections that are not read for a while, in the order in which they will be: those of keys, of addresses and new
 * ones alternately, and of these the key or address first whose connections have cost least. Pure.
 */
import type { Socket } from "node:net";
import { CONNECTION_NEW_MS } from "../../../contracts/limits/requests.ts";
import { hasKey, ownerOf } from "../owners.ts";
import { CheapestFirst } from "./cheapest-first.ts";
import type { OwnerCosts } from "./owner-costs.ts";

/** Node's view of a socket of the system. It is undocumented, and the same from Node 20 to 24. */
export interface Handle {
  /** Whether Node wants to read. It stays while this file has stopped the reading, so Node's own pauses stay too. */
  reading: boolean;
  /** Missing where a handle cannot stop reading. */
  readStop?: () => void;
  readStart: () => number;
}

interface HandledSocket extends Socket {
  _handle?: Handle | null;
}

/** A connection whose reading can be stopped. */
export interface ReadConnection {
  readonly socket: HandledSocket;
  readonly openedMs: number;
}

export class WaitingConnections {
  private readonly ofKeys: CheapestFirst<ReadConnection>;
  private readonly ofAddresses: CheapestFirst<ReadConnection>;
  /** Of addresses too, but new: nobody knows yet whether their first request has a key. */
  private readonly fresh: CheapestFirst<ReadConnection>;
  private readonly inTurn: CheapestFirst<ReadConnection>[];
  /** Those that can wait: what they send is dropped. */
  private readonly last: CheapestFirst<ReadConnection>;
  private count = 0;

  constructor(costs: OwnerCosts) {
    this.ofKeys = new CheapestFirst(costs);
    this.ofAddresses = new CheapestFirst(costs);
    this.fresh = new CheapestFirst(costs);
    this.last = new CheapestFirst(costs);
    this.inTurn = [this.ofKeys, this.ofAddresses, this.fresh];
  }

  get isEmpty(): boolean {
    return this.count === 0;
  }

  push(connection: ReadConnection, nowMs: number): void {
    const { socket, openedMs } = connection;
    const isFresh = socket.bytesRead === 0 && nowMs - openedMs < CONNECTION_NEW_MS;
    const queue = hasKey(socket) ? this.ofKeys : isFresh ? this.fresh : this.ofAddresses;
    queue.push(ownerOf(socket), connection);
    this.count++;
  }

  /** After all others. */
  pushLast(connection: ReadConnection): void {
    this.last.push(ownerOf(connection.socket), connection);
    this.count++;
  }

  /** At most so many that are still open. Of those that can wait, one. */
  take(most: number): ReadConnection[] {
    const taken: ReadConnection[] = [];
    while (taken.length < most) {
      const connection = this.shift();
      if (connection === undefined) break;
      if (!connection.socket.destroyed) taken.push(connection);
    }
    if (taken.length < most) taken.push(...this.takeLast());
    return taken;
  }

  private takeLast(): ReadConnection[] {
    for (let next = this.last.shift(); next !== undefined; next = this.last.shift()) {
      this.count--;
      if (!next.socket.destroyed) return [next];
    }
    return [];
  }

  private shift(): ReadConnection | undefined {
    this.inTurn.push(this.inTurn.shift()!);
    for (const queue of this.inTurn) {
      const connection = queue.shift();
      if (connection === undefined) continue;
      this.count--;
      return connection;
    }
    return undefined;
  }
}
