/**
 * Deals connections to several gateways in turn (docs/decisions/0002-listening-socket.md). If each gateway accepted by
 * itself, the first to wake would take all waiting connections, and keep them as long as clients do.
 */
import type { ChildProcess } from "node:child_process";
import net from "node:net";

/** For a moment, a gateway that has ended still counts as ready. */
const DEAL_AGAIN_MS = 10;

interface Connection {
  socket: net.Socket;
  listener: number;
}

export interface DealerOptions {
  /** The gateways that take connections now. */
  gateways: () => readonly ChildProcess[];
  /** The listener that stays open while gateways finish their requests. */
  last: number;
}

export class ConnectionDealer {
  private readonly handles: readonly object[];
  private readonly options: DealerOptions;
  private servers: net.Server[] = [];
  private dealt = 0;
  /** Connections that wait until a gateway is ready, as they would in the kernel. */
  private waiting: Connection[] = [];
  /** Per gateway, the connections that it has not received yet: Node sends one at a time, and queues the rest here. */
  private readonly underWay = new Map<ChildProcess, Set<Connection>>();

  /** `handles` are bound sockets. Their order gives the numbers by which gateways know the listeners. */
  constructor(handles: readonly object[], options: DealerOptions) {
    this.handles = handles;
    this.options = options;
  }

  start(): void {
    this.servers = this.handles.map((handle, listener) => {
      // The socket is paused, because the gateway must read what the client has sent.
      const server = net.createServer({ pauseOnConnect: true, allowHalfOpen: true }, (socket) =>
        this.deal({ socket: socket.on("error", () => socket.destroy()), listener }),
      );
      return server.listen(handle);
    });
  }

  /** Called when a gateway has become ready. */
  dealWaiting(): void {
    for (const connection of this.waiting.splice(0)) this.deal(connection);
  }

  /** Closes all listeners except the last one. */
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
    // The parent keeps its copy open. If the gateway dies during the transfer, Node would never close it.
    gateway.send({ listener }, socket, { keepOpen: true }, (error) => {
      // If the gateway has ended before, the connection was already dealt to another one.
      if (!underWay.delete(connection)) return;
      if ((error as NodeJS.ErrnoException | null)?.code === "ERR_IPC_CHANNEL_CLOSED")
        this.dealLater(connection);
      else socket.destroy();
    });
  }

  private dealLater(connection: Connection): void {
    setTimeout(() => this.deal(connection), DEAL_AGAIN_MS);
  }

  /**
   * When the gateway ends, connections that it has not received go to another one. Otherwise their clients would never
   * get a response.
   */
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
