/** A TCP proxy in front of a real server that breaks connections on request of a test. */
import { createConnection, createServer, type Server, type Socket } from "node:net";

type Fault =
  | { kind: "none" }
  /** The answer ends after so many bytes; for so many connections. */
  | { kind: "cut"; afterBytes: number; times: number }
  /** The request ends after so many bytes; for so many connections. */
  | { kind: "cut-request"; afterBytes: number; times: number }
  /** Connections break when a request has this text. */
  | { kind: "cut-of"; text: string }
  /** An HTTP answer of our own to every request. */
  | { kind: "answer"; status: number }
  /** Connections are accepted, and nothing is answered. */
  | { kind: "silent" };

export class FaultyProxy {
  fault: Fault = { kind: "none" };
  /** The number of accepted connections. */
  connections = 0;
  /** The number of bytes that clients have sent. */
  received = 0;
  private readonly target: number;
  private readonly sockets = new Set<Socket>();
  private server!: Server;
  private port = 0;

  private constructor(target: number) {
    this.target = target;
  }

  static async open(target: number): Promise<FaultyProxy> {
    const proxy = new FaultyProxy(target);
    proxy.server = createServer((socket) => proxy.take(socket));
    await new Promise<void>((resolve) => proxy.server.listen(0, "127.0.0.1", resolve));
    proxy.port = (proxy.server.address() as { port: number }).port;
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Connections that are open keep the fault that they began with, so they are closed. */
  set(fault: Fault): void {
    this.fault = fault;
    for (const socket of this.sockets) socket.destroy();
  }

  close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    return new Promise((resolve) => this.server.close(() => resolve()));
  }

  private take(client: Socket): void {
    this.connections++;
    this.keep(client);
    const { fault } = this;
    if (fault.kind === "silent") return;
    if (fault.kind === "answer") {
      client.on("data", () => {
        client.end(`HTTP/1.1 ${fault.status} No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`);
      });
      return;
    }
    const server = createConnection(this.target, "127.0.0.1");
    this.keep(server);
    client.on("data", (chunk: Buffer) => {
      this.received += chunk.length;
      if (fault.kind === "cut-of" && chunk.includes(fault.text)) server.destroy();
    });
    const isCut = "times" in fault && fault.times-- > 0;
    if (isCut && fault.kind === "cut-request") this.cut(client, server, fault.afterBytes);
    else client.pipe(server);
    if (isCut && fault.kind === "cut") this.cut(server, client, fault.afterBytes);
    else server.pipe(client);
    client.on("close", () => server.destroy());
    server.on("close", () => client.destroySoon());
  }

  private cut(from: Socket, to: Socket, afterBytes: number): void {
    let left = afterBytes;
    from.on("data", (chunk: Buffer) => {
      if (left <= 0) return;
      to.write(chunk.subarray(0, left));
      left -= chunk.length;
      if (left > 0) return;
      from.destroy();
      to.destroySoon();
    });
  }

  private keep(socket: Socket): void {
    this.sockets.add(socket);
    socket.on("error", () => {}).on("close", () => this.sockets.delete(socket));
  }
}

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
