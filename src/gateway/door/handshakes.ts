/**
 * Bounds the TLS handshakes of one listener: those in progress, and by `HandshakeTurns` the work for them in one turn of
 * the event loop. Each holds 60 KB, and a client that never finishes one needs no key. Beyond the bound a new one closes
 * the oldest of the address that has most, if that has more than a share, else the oldest of all: a client that means to
 * connect finishes in less than a second.
 */
import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { SecureContext, TLSSocket } from "node:tls";
import { contain } from "../../base/boundary.ts";
import { addressOwner } from "../../base/fair/address-owner.ts";
import {
  CONNECTIONS_SHARE,
  HANDSHAKE_BYTES_MAX,
  HANDSHAKE_MS,
  HANDSHAKES_MAX,
  LATE_AT_ONCE_MAX,
} from "../../contracts/limits/requests.ts";
import { openTls } from "../connections/open-tls.ts";
import { Shares } from "../connections/shares.ts";
import { readRecords } from "../connections/tls-records.ts";
import type { HandshakeTurns } from "../connections/turns/handshake-turns.ts";

const LATE_POLL_MS = 1_000;

interface Handshake {
  socket: Socket;
  owner: string;
  openedMs: number;
}

export interface HandshakeRules {
  /** The certificate, and what else is offered to the client. */
  context: () => SecureContext;
  turns: HandshakeTurns;
  /** Counts the work for what clients send later: see `readRecords`. */
  count: (parts: number) => void;
}

/** Its listeners for connections get those whose handshake is over. */
export function serveTls(server: Server, rules: HandshakeRules): void {
  const take = server.listeners("connection") as ((socket: Socket) => void)[];
  const handshakes = new Handshakes((socket) => {
    for (const listener of take) listener.call(server, socket);
  }, rules);
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => handshakes.add(socket));
}

class Handshakes {
  private readonly take: (socket: TLSSocket) => void;
  private readonly rules: HandshakeRules;
  private readonly underWay = new Set<Handshake>();
  private readonly byOwner = new Map<string, Set<Handshake>>();
  private readonly shares = new Shares(HANDSHAKES_MAX / CONNECTIONS_SHARE);
  private timer: NodeJS.Timeout | undefined;

  constructor(take: (socket: TLSSocket) => void, rules: HandshakeRules) {
    this.take = take;
    this.rules = rules;
  }

  add(socket: Socket): void {
    const owner = addressOwner(socket.remoteAddress);
    const handshake = { socket, owner, openedMs: performance.now() };
    this.underWay.add(handshake);
    this.byOwner.set(owner, (this.byOwner.get(owner) ?? new Set()).add(handshake));
    this.shares.add(owner, 1);
    socket.once("close", () => this.forget(handshake));
    this.timer ??= setInterval(
      () => contain("late TLS handshakes", () => this.endLate()),
      LATE_POLL_MS,
    ).unref();
    if (this.underWay.size > HANDSHAKES_MAX) this.closeOldest();
    // After an error, and after an end before TLS reads, nothing is left to do.
    socket.on("error", () => {}).once("end", () => socket.destroy());
    // A client that sends nothing costs no more than its connection.
    socket.once("readable", () => this.inTurn(handshake, () => this.begin(handshake)));
  }

  private inTurn({ owner, socket }: Handshake, give: () => void): void {
    this.rules.turns.push(owner, socket, give);
  }

  private begin(handshake: Handshake): void {
    const { socket } = handshake;
    if (socket.readableLength === 0 || socket.readableLength > HANDSHAKE_BYTES_MAX)
      return this.close(handshake);
    const { context, count } = this.rules;
    const secured = openTls(socket, context(), (tls) => {
      this.forget(handshake);
      this.take(tls);
    });
    readRecords(secured, socket, { inTurn: (give) => this.inTurn(handshake, give), count });
  }

  private closeOldest(): void {
    const { largest } = this.shares;
    const [oldest] = largest === undefined ? this.underWay : this.byOwner.get(largest)!;
    this.close(oldest!);
  }

  /** A few in each turn: those that came together are late together. */
  private endLate(): void {
    const sinceMs = performance.now() - HANDSHAKE_MS;
    let left = LATE_AT_ONCE_MAX;
    for (const handshake of this.underWay) {
      if (handshake.openedMs > sinceMs || left-- === 0) break;
      this.close(handshake);
    }
    if (left < 0) setImmediate(() => contain("late TLS handshakes", () => this.endLate()));
    if (this.underWay.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  /** Forgets the connection at once: it closes a turn later, and many connections come in one turn. */
  private close(handshake: Handshake): void {
    this.forget(handshake);
    handshake.socket.destroy();
  }

  private forget(handshake: Handshake): void {
    if (!this.underWay.delete(handshake)) return;
    const { owner } = handshake;
    const ofOwner = this.byOwner.get(owner)!;
    ofOwner.delete(handshake);
    if (ofOwner.size === 0) this.byOwner.delete(owner);
    this.shares.add(owner, -1);
  }
}
