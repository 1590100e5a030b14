/**
 * Bounds the open connections of one listener. Beyond the bound, a new connection closes one of the owner that has most,
 * if that is more than a share of all: an idle one if there is one, else one with a request in progress. So whoever
 * opens too many connections closes only their own. If nobody has that many, a new one closes an idle one of anybody; if
 * all have requests in progress, the new one is closed. Requests cost nothing here, except those that change the owner.
 */
import type { Socket } from "node:net";
import { processLog } from "../../base/log.ts";
import {
  CONNECTION_NEW_MS,
  CONNECTIONS_LOOKED_AT_MAX,
  CONNECTIONS_SHARE,
} from "../../contracts/limits/requests.ts";
import { followOwner } from "../connections/owners.ts";
import { Shares } from "../connections/shares.ts";
import type { ConnectionUse } from "./asked-at-once.ts";

const SAY_EVERY_MS = 60_000;
/** If none is idle, these are closed first. */
const ORDER = ["slow", "used", "busy"] as const;

interface Connection {
  owner: string;
  openedMs: number;
}

/** Connections that were longest not looked at come first. */
type Ring = Map<Socket, Connection>;

export class OpenConnections {
  private readonly most: number;
  private readonly use: (socket: Socket) => ConnectionUse;
  private readonly open: Ring = new Map();
  private readonly byOwner = new Map<string, Ring>();
  private readonly shares: Shares;
  private saidMs = Number.NEGATIVE_INFINITY;

  constructor(most: number, use: (socket: Socket) => ConnectionUse) {
    this.most = most;
    this.use = use;
    this.shares = new Shares(most / CONNECTIONS_SHARE);
  }

  add(socket: Socket): void {
    const nowMs = performance.now();
    if (this.open.size >= this.most && !this.makeSpace(nowMs)) {
      socket.destroy();
      return;
    }
    const owner = followOwner(socket, (to) => this.move(socket, to));
    const connection = { owner, openedMs: nowMs };
    this.open.set(socket, connection);
    this.join(socket, connection);
    socket.once("close", () => this.forget(socket));
  }

  private makeSpace(nowMs: number): boolean {
    const owner = this.shares.largest;
    if (owner === undefined) return this.closeOneOf(this.open, nowMs, ["used"]);
    this.sayWhose(owner, nowMs);
    return this.closeOneOf(this.byOwner.get(owner)!, nowMs, ORDER);
  }

  /**
   * Looks at some connections, and puts them behind the others. Closes an idle one, else one of the first use in `order`
   * that any of these has.
   */
  private closeOneOf(ring: Ring, nowMs: number, order: readonly ConnectionUse[]): boolean {
    const found: Partial<Record<ConnectionUse, Socket>> = {};
    let looks = Math.min(ring.size, CONNECTIONS_LOOKED_AT_MAX);
    for (const [socket, connection] of ring) {
      if (looks-- === 0) break;
      const use = this.use(socket);
      const isLate = use === "new" && nowMs - connection.openedMs >= CONNECTION_NEW_MS;
      if (use === "idle" || isLate) return this.close(socket);
      found[use === "new" ? "used" : use] ??= socket;
      ring.delete(socket);
      ring.set(socket, connection);
    }
    const first = order.find((use) => found[use] !== undefined);
    return first !== undefined && this.close(found[first]!);
  }

  /** Forgets it at once: it closes a turn later, and many connections come in one turn. */
  private close(socket: Socket): true {
    this.forget(socket);
    socket.destroy();
    return true;
  }

  private forget(socket: Socket): void {
    const connection = this.open.get(socket);
    if (connection === undefined) return;
    this.open.delete(socket);
    this.leave(socket, connection);
  }

  private move(socket: Socket, to: string): void {
    const connection = this.open.get(socket);
    if (connection === undefined) return;
    this.leave(socket, connection);
    connection.owner = to;
    this.join(socket, connection);
  }

  private join(socket: Socket, connection: Connection): void {
    const { owner } = connection;
    const ring = this.byOwner.get(owner);
    if (ring === undefined) this.byOwner.set(owner, new Map([[socket, connection]]));
    else ring.set(socket, connection);
    this.shares.add(owner, 1);
  }

  private leave(socket: Socket, { owner }: Connection): void {
    const ring = this.byOwner.get(owner)!;
    ring.delete(socket);
    if (ring.size === 0) this.byOwner.delete(owner);
    this.shares.add(owner, -1);
  }

  private sayWhose(owner: string, nowMs: number): void {
    if (nowMs - this.saidMs < SAY_EVERY_MS) return;
    this.saidMs = nowMs;
    const count = this.shares.of(owner);
    processLog().warn(
      { event: "connections_full", most: this.most, owner, count },
      `all ${this.most} connections of a listener are in use, ${count} of them by ${owner}: new ones close ` +
        "connections of whoever has most (said at most once a minute)",
    );
  }
}
