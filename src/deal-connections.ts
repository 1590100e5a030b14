/**
 * Connections are dealt to several gateways in turn (docs/decisions/0002-listening-socket.md). Where each accepted for itself, the
 * first to wake would take all that wait, and keep them as long as clients do.
 */
import type { ChildProcess } from "node:child_process";
import net from "node:net";

/** A gateway that has ended is among the ready ones for a moment still. */
const DEAL_AGAIN_MS = 10;

interface Connection {
  socket: net.Socket;
  listener: number;
}

export interface DealerOptions {
  /** Those that take connections now. */
  gateways: () => readonly ChildProcess[];
  /** The listener that stays open while gateways finish what they have. */
  last: number;
}

export class ConnectionDealer {
  private readonly handles: readonly object[];
  private readonly options: DealerOptions;
  private servers: net.Server[] = [];
  private dealt = 0;
  /** Connections that no gateway was ready for: they wait here, as they would in the kernel. */
  private waiting: Connection[] = [];
  /** By gateway, those that it has not taken yet: Node sends one at a time, and keeps the rest here. */
  private readonly underWay = new Map<ChildProcess, Set<Connection>>();

  /** `handles`: bound sockets, by the number of the listener that a gateway has for each. */
  constructor(handles: readonly object[], options: DealerOptions) {
    this.handles = handles;
    this.options = options;
  }

  start(): void {
    this.servers = this.handles.map((handle, listener) => {
      // Paused: what a client has sent is for the gateway to read.
      const server = net.createServer({ pauseOnConnect: true, allowHalfOpen: true }, (socket) =>
        this.deal({ socket: socket.on("error", () => socket.destroy()), listener }),
      );
      return server.listen(handle);
    });
  }

  /** A gateway has become ready. */
  dealWaiting(): void {
    for (const connection of this.waiting.splice(0)) this.deal(connection);
  }

  /** No new connections but on the last listener. */
  close(): void {
    for (const [listener, server] of this.servers.entries())
      if (listener !== this.options.last) server.close();
  }

  closeLast(): void {
    this.servers[this.options.last]!.close();
    for (const { socket } of this.waiting.splice(0)) socket.destroy();
  }

  private deal(connection: Connection): void {
    const { socket, listener } = connection;
    const ready = this.options.gateways();
    const gateway = ready[this.dealt++ % ready.length];
    if (gateway === undefined) {
      this.waiting.push(connection);
      return;
    }
    const underWay = this.underWayTo(gateway);
    underWay.add(connection);
    // Kept open: of one that was on its way when the gateway died, Node would never close ours.
    gateway.send({ listener }, socket, { keepOpen: true }, (error) => {
      // Its end may have come first, and have dealt it to another.
      if (!underWay.delete(connection)) return;
      if ((error as NodeJS.ErrnoException | null)?.code === "ERR_IPC_CHANNEL_CLOSED")
        this.dealLater(connection);
      else socket.destroy();
    });
  }

  private dealLater(connection: Connection): void {
    setTimeout(() => this.deal(connection), DEAL_AGAIN_MS);
  }

  /** When the gateway ends, what it has not taken goes to another: nobody else would tell these clients. */
  private underWayTo(gateway: ChildProcess): Set<Connection> {
    const known = this.underWay.get(gateway);
    if (known !== undefined) return known;
    const connections = new Set<Connection>();
    this.underWay.set(gateway, connections);
    gateway.once("exit", () => {
      this.underWay.delete(gateway);
      const left = [...connections];
      connections.clear();
      for (const connection of left) this.dealLater(connection);
    });
    return connections;
  }
}
