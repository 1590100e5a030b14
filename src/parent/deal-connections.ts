/**
 * Deals connections to several gateways in turn (docs/decisions/0002-listening-socket.md). If each gateway accepted by
 * itself, the first to wake would take all waiting connections, and keep them as long as clients do.
 *
 * It accepts only what a gateway has a place for. All others wait in the kernel, so they cannot take the files that a new
 * gateway needs. It gives each gateway one connection at a time: Node queues all messages to a process behind a
 * connection that the process has not received, also those that check whether it responds.
 */
import type { ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import { delay } from "../base/clock.ts";
import { addressOwner } from "../base/fair/address-owner.ts";
import { CONNECTIONS_QUEUED_MAX } from "../contracts/limits/processes.ts";
import { openFilesMax } from "../observe/open-files.ts";
import { ConnectionQueues } from "./connection-queues.ts";
import { PausableServer } from "./pausable-server.ts";
import { hasEnded } from "./supervised-child.ts";

/** Follows each connection. Node sends it once the gateway has received the connection. Gateways ignore it. */
const RECEIVED = "received";
/** How often the parent checks whether it has read all messages of a gateway that has ended. */
const READ_POLL_MS = 10;
/** A gateway that does not respond must not keep the server from stopping. */
const LAST_DEALT_MS = 2_000;

interface Connection {
  socket: Socket;
  listener: number;
  owner: string;
}

export interface DealerOptions {
  /** The gateways that take connections now. */
  gateways: () => readonly ChildProcess[];
  /** How many gateways there are at most. */
  count: number;
  /** The listener that stays open while gateways finish their requests. */
  last: number;
}

export class ConnectionDealer {
  private readonly sockets: readonly { fd: number }[];
  private readonly options: DealerOptions;
  private readonly queues: ConnectionQueues<ChildProcess, Connection>;
  private readonly watched = new WeakSet<ChildProcess>();
  private servers: PausableServer[] = [];

  /** `sockets` are bound. Their order gives the numbers by which gateways know the listeners. */
  constructor(sockets: readonly { fd: number }[], options: DealerOptions) {
    this.sockets = sockets;
    this.options = options;
    this.queues = new ConnectionQueues(queuedMax(options.count * sockets.length));
  }

  start(): void {
    this.servers = this.sockets.map(
      ({ fd }, listener) =>
        new PausableServer(fd, (socket) => {
          const owner = addressOwner(socket.remoteAddress);
          this.queues.add(
            { socket: socket.on("error", () => socket.destroy()), listener, owner },
            this.ready(),
          );
          this.deal();
        }),
    );
    this.deal();
  }

  /** Called when a gateway may have become ready, or may no longer be. */
  deal(): void {
    const ready = this.ready();
    this.queues.dealAgain(ready);
    for (const gateway of ready) this.give(gateway);
    for (const [listener, server] of this.servers.entries())
      server.accept(this.queues.mayAccept(listener, ready));
  }

  /**
   * Closes all listeners except the last one. Resolves once gateways have received what was accepted, which nobody would
   * answer otherwise, or if that takes too long.
   */
  async close(): Promise<void> {
    const closing = [...this.servers.keys()].filter((listener) => listener !== this.options.last);
    for (const listener of closing) this.servers[listener]!.close();
    const endMs = performance.now() + LAST_DEALT_MS;
    while (this.queues.holds(closing) && performance.now() < endMs) await delay(READ_POLL_MS);
  }

  closeLast(): void {
    this.servers[this.options.last]!.close();
    for (const { socket } of this.queues.clear()) socket.destroy();
  }

  /** For a moment, a gateway that has ended still counts as one that takes connections. */
  private ready(): ChildProcess[] {
    return this.options.gateways().filter((gateway) => gateway.connected && !hasEnded(gateway));
  }

  private give(gateway: ChildProcess): void {
    const connection = this.queues.next(gateway);
    if (connection === undefined) return;
    this.watch(gateway);
    const { socket, listener } = connection;
    // The parent keeps its copy open. If the gateway dies before it has the connection, another one gets it.
    gateway.send({ listener }, socket, { keepOpen: true }, () => {});
    gateway.send(RECEIVED, () => {
      if (!this.queues.received(gateway, connection)) return;
      socket.destroy();
      this.deal();
    });
  }

  private watch(gateway: ChildProcess): void {
    if (this.watched.has(gateway)) return;
    this.watched.add(gateway);
    gateway.once("exit", () => this.onEnd(gateway));
  }

  /** Its last messages may say that it received a connection. Another gateway could not read what it has read of it. */
  private onEnd(gateway: ChildProcess): void {
    if (gateway.connected) {
      setTimeout(() => this.onEnd(gateway), READ_POLL_MS);
      return;
    }
    this.queues.forget(gateway);
    this.deal();
  }
}

/** For each gateway and listener. All together take at most a quarter of the files. */
function queuedMax(queues: number): number {
  const share = Math.floor(openFilesMax() / 4 / queues);
  return Math.max(1, Math.min(CONNECTIONS_QUEUED_MAX, share));
}
