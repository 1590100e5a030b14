/** A TCP proxy in front of PostgreSQL that breaks connections at a COMMIT. */
import { createConnection, createServer, type Server, type Socket } from "node:net";

/**
 * - `drop`: the server never gets the COMMIT.
 * - `unanswered`: it gets it, and its answer is lost.
 * - `late`: it gets it when `release` is called, long after the client has lost the connection.
 */
export type CommitFault = "drop" | "unanswered" | "late";

export class CommitProxy {
  /** For the next COMMIT only. */
  next: CommitFault | undefined;
  /** Resolves what `late` holds back. */
  release: () => void = () => {};
  connections = 0;
  private readonly target: number;
  private readonly sockets = new Set<Socket>();
  private server!: Server;

  private constructor(target: number) {
    this.target = target;
  }

  static async open(target: number): Promise<CommitProxy> {
    const proxy = new CommitProxy(target);
    proxy.server = createServer((client) => proxy.take(client));
    await new Promise<void>((resolve) => proxy.server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get port(): number {
    return (this.server.address() as { port: number }).port;
  }

  close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    return new Promise((resolve) => this.server.close(() => resolve()));
  }

  private take(client: Socket): void {
    this.connections++;
    const server = createConnection(this.target, "127.0.0.1");
    for (const socket of [client, server]) {
      this.sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => this.sockets.delete(socket));
    }
    client.on("data", (bytes: Buffer) => {
      const fault = bytes.includes("; COMMIT") ? this.next : undefined;
      if (fault === undefined) return void server.write(bytes);
      this.next = undefined;
      this.apply(fault, bytes, client, server);
    });
    server.on("data", (bytes: Buffer) => client.write(bytes));
    server.on("close", () => client.destroy());
    client.on("close", () => {
      if (!this.isKept(server)) server.destroy();
    });
  }

  /** The server's side outlives the client's: its COMMIT is still on the way. */
  private kept: Socket | undefined;

  private isKept(server: Socket): boolean {
    return this.kept === server;
  }

  private apply(fault: CommitFault, bytes: Buffer, client: Socket, server: Socket): void {
    if (fault === "unanswered") {
      server.removeAllListeners("data");
      // The answer says that the COMMIT is done.
      server.on("data", () => client.destroy());
      server.write(bytes);
      return;
    }
    this.kept = fault === "late" ? server : undefined;
    this.release = () => void server.write(bytes);
    client.destroy();
  }
}
