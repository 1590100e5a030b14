/**
 * Connections are dealt to several gateways in turn (docs/decisions/0002-listening-socket.md). Where each accepted for itself, the
 * first to wake would take all that wait, and keep them as long as clients do.
 */
import type { ChildProcess } from "node:child_process";
import net from "node:net";

export class ConnectionDealer {
  private readonly handles: readonly object[];
  private readonly gateways: () => readonly ChildProcess[];
  private servers: net.Server[] = [];
  private dealt = 0;
  /** Connections that no gateway was ready for: they wait here, as they would in the kernel. */
  private waiting: (() => void)[] = [];

  /** `handles`: bound sockets, by the number of the listener that a gateway has for each. `gateways`: those that are ready. */
  constructor(handles: readonly object[], gateways: () => readonly ChildProcess[]) {
    this.handles = handles;
    this.gateways = gateways;
  }

  start(): void {
    this.servers = this.handles.map((handle, listener) => {
      // Paused: what a client has sent is for the gateway to read.
      const server = net.createServer({ pauseOnConnect: true, allowHalfOpen: true }, (socket) =>
        this.deal(
          socket.on("error", () => socket.destroy()),
          listener,
        ),
      );
      return server.listen(handle);
    });
  }

  /** A gateway has become ready. */
  dealWaiting(): void {
    for (const deal of this.waiting.splice(0)) deal();
  }

  /** No new connections. */
  close(): void {
    for (const server of this.servers) server.close();
  }

  private deal(socket: net.Socket, listener: number): void {
    const ready = this.gateways();
    const gateway = ready[this.dealt++ % ready.length];
    if (gateway === undefined) this.waiting.push(() => this.deal(socket, listener));
    else gateway.send({ listener }, socket, {}, (error) => error && socket.destroy());
  }
}
