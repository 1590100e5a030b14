/**
 * A listening socket that can stop accepting for a while. New connections then wait in the kernel, up to the backlog, and
 * are accepted in their order later. Nobody is refused: if the backlog is full, the client's system tries again.
 *
 * Node has no public function for this: `close` would give up the socket, and `maxConnections` refuses. We use
 * `readStart` and `readStop` of Node's handle, as the gateways do for connections. They start and stop the poll of the
 * descriptor, also of one that listens, if it was opened by its number. The tests run on Node 20 and 24.
 */
import net from "node:net";

interface ListeningServer extends net.Server {
  _handle: { readStart: () => void; readStop: () => void } | null;
}

export class PausableServer {
  private readonly server: ListeningServer;
  private isAccepting = true;

  /** Listens on a bound socket, and accepts. Sockets are paused: the gateway must read what the client has sent. */
  constructor(fd: number, onConnection: (socket: net.Socket) => void) {
    const server = net.createServer({ pauseOnConnect: true, allowHalfOpen: true }, onConnection);
    this.server = server.listen({ fd }) as ListeningServer;
    // Without this, the first stop would have no effect.
    this.server._handle?.readStart();
  }

  /** Takes effect at once: even of the connections that have come, none is accepted after a stop. */
  accept(isAccepting: boolean): void {
    if (isAccepting === this.isAccepting) return;
    this.isAccepting = isAccepting;
    const handle = this.server._handle;
    if (isAccepting) handle?.readStart();
    else handle?.readStop();
  }

  close(): void {
    this.server.close();
  }
}
