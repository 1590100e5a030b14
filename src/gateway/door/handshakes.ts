/**
 * Bounds the TLS handshakes of one listener: those in progress, and by `HandshakeTurns` those that one turn of the event
 * loop begins. Each holds 60 KB, and a client that never finishes one needs no key. Beyond the bound a new one closes
 * the oldest of the address that has most, if that has more than a share, else the oldest of all: a client that means to
 * connect finishes in less than a second.
 */
import type { Server as TlsServer } from "node:https";
import type { Socket } from "node:net";
import { contain } from "../../base/boundary.ts";
import {
  CONNECTIONS_SHARE,
  HANDSHAKE_MS,
  HANDSHAKES_MAX,
  HANDSHAKES_RETRIED_MAX,
  LATE_AT_ONCE_MAX,
} from "../../contracts/limits/requests.ts";
import { whenHelloIsWhole } from "../connections/client-hello.ts";
import { type HandshakeTurns, handshakeTurns } from "../connections/handshake-turns.ts";
import { addressOwner } from "../connections/owners.ts";
import { Shares } from "../connections/shares.ts";

/**
 * What a server writes if it asks for another ClientHello (RFC 8446, section 4.1.4) has at most 105 bytes, its answer to
 * one that names a session has 150 or more.
 */
const RETRY_BYTES_MAX = 128;
const LATE_POLL_MS = 1_000;

interface Handshake {
  /** The client's address and port, because a TLS socket does not show which connection it uses. */
  name: string;
  socket: Socket;
  owner: string;
  openedMs: number;
}

export function boundHandshakes(server: TlsServer, turns = handshakeTurns): void {
  const begin = server.listeners("connection") as ((socket: Socket) => void)[];
  const handshakes = new Handshakes((socket) => {
    for (const listener of begin) listener.call(server, socket);
  }, turns);
  server.removeAllListeners("connection");
  server.on("connection", (socket: Socket) => handshakes.add(socket));
  server.prependListener("secureConnection", (socket) => handshakes.finish(socket));
}

export class Handshakes {
  private readonly begin: (socket: Socket) => void;
  private readonly turns: HandshakeTurns;
  private readonly underWay = new Map<string, Handshake>();
  private readonly byOwner = new Map<string, Set<Handshake>>();
  private readonly shares = new Shares(HANDSHAKES_MAX / CONNECTIONS_SHARE);
  /** Those that were asked for another ClientHello: TLS signs for it without a turn. */
  private readonly retried = new Set<Handshake>();
  private timer: NodeJS.Timeout | undefined;

  /** `begin` gives a connection to TLS. */
  constructor(begin: (socket: Socket) => void, turns: HandshakeTurns) {
    this.begin = begin;
    this.turns = turns;
  }

  add(socket: Socket): void {
    const owner = addressOwner(socket.remoteAddress);
    const handshake = { name: nameOf(socket), socket, owner, openedMs: performance.now() };
    this.underWay.set(handshake.name, handshake);
    this.byOwner.set(owner, (this.byOwner.get(owner) ?? new Set()).add(handshake));
    this.shares.add(owner, 1);
    socket.once("close", () => this.forget(handshake));
    this.timer ??= setInterval(
      () => contain("late TLS handshakes", () => this.endLate()),
      LATE_POLL_MS,
    ).unref();
    if (this.underWay.size > HANDSHAKES_MAX) this.closeOldest();
    whenHelloIsWhole(socket, () => this.await(handshake));
  }

  finish(socket: Socket): void {
    const handshake = this.underWay.get(nameOf(socket));
    if (handshake !== undefined) this.forget(handshake);
  }

  private await(handshake: Handshake): void {
    const { socket } = handshake;
    const before = socket.bytesWritten;
    const onBegun = () => {
      const written = socket.bytesWritten - before;
      if (written > 0 && written <= RETRY_BYTES_MAX && this.isUnderWay(handshake)) this.addRetried(handshake);
    };
    this.turns.push(socket, () => this.begin(socket), onBegun);
  }

  private addRetried(handshake: Handshake): void {
    this.retried.add(handshake);
    const [oldest] = this.retried;
    if (this.retried.size > HANDSHAKES_RETRIED_MAX) this.close(oldest!);
  }

  private isUnderWay(handshake: Handshake): boolean {
    return this.underWay.get(handshake.name) === handshake;
  }

  private closeOldest(): void {
    const { largest } = this.shares;
    const [oldest] = largest === undefined ? this.underWay.values() : this.byOwner.get(largest)!;
    this.close(oldest!);
  }

  /** A few in each turn: those that came together are late together. */
  private endLate(): void {
    const sinceMs = performance.now() - HANDSHAKE_MS;
    let left = LATE_AT_ONCE_MAX;
    for (const handshake of this.underWay.values()) {
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
    const { name, owner } = handshake;
    const ofOwner = this.byOwner.get(owner);
    if (ofOwner?.delete(handshake) !== true) return;
    if (ofOwner.size === 0) this.byOwner.delete(owner);
    this.shares.add(owner, -1);
    this.retried.delete(handshake);
    if (this.isUnderWay(handshake)) this.underWay.delete(name);
  }
}

function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
