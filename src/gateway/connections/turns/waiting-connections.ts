/**
 * Connections that are not read for a while, in the order in which they will be: those of keys, of addresses and new
 * ones alternately, and every key and address in its turn. Pure.
 */
import type { Socket } from "node:net";
import { FairQueue } from "../../../base/fair/fair-queue.ts";
import { CONNECTION_NEW_MS } from "../../../contracts/limits/requests.ts";
import { hasKey, ownerOf } from "../owners.ts";

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
  private readonly ofKeys = newQueue();
  private readonly ofAddresses = newQueue();
  /** Of addresses too, but new: nobody knows yet whether their first request has a key. */
  private readonly fresh = newQueue();
  private readonly inTurn = [this.ofKeys, this.ofAddresses, this.fresh];
  private count = 0;

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

  /** At most so many that are still open. */
  take(most: number): ReadConnection[] {
    const taken: ReadConnection[] = [];
    while (taken.length < most) {
      const connection = this.shift();
      if (connection === undefined) break;
      if (!connection.socket.destroyed) taken.push(connection);
    }
    return taken;
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

function newQueue(): FairQueue<ReadConnection> {
  return new FairQueue(Number.POSITIVE_INFINITY);
}
