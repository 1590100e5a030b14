/** Requests whose bodies come late, slowly or never: a head is sent, and the response is watched. */
import { connect, type Socket } from "node:net";

export class RawRequests {
  private readonly baseUrl: URL;
  private readonly sockets = new Set<Socket>();

  constructor(baseUrl: string) {
    this.baseUrl = new URL(baseUrl);
  }

  /** Sends a head that ends with `extra`. */
  send(line: string, headers: Record<string, string | number>, from = "127.0.0.1"): RawRequest {
    const socket = connect({ port: Number(this.baseUrl.port), host: "127.0.0.1", localAddress: from });
    this.sockets.add(socket);
    const lines = Object.entries({ host: "localhost", ...headers }).map(
      ([name, value]) => `${name}: ${value}`,
    );
    socket.write(`${[`${line} HTTP/1.1`, ...lines].join("\r\n")}\r\n\r\n`);
    return new RawRequest(socket);
  }

  close(): void {
    for (const socket of this.sockets) socket.destroy();
    this.sockets.clear();
  }
}

export class RawRequest {
  readonly socket: Socket;
  /** The bytes received so far. */
  text = "";
  private readonly first: Promise<string>;
  private readonly last: Promise<string>;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("error", () => {});
    socket.on("data", (data) => (this.text += String(data)));
    this.first = new Promise((resolve) => {
      socket.once("data", () => resolve(this.status));
      socket.once("close", () => resolve(this.status));
    });
    this.last = new Promise((resolve) => {
      socket.once("close", () => resolve(/.*^HTTP\/1\.1 (\d{3})/ms.exec(this.text)?.[1] ?? ""));
    });
  }

  /** The status of the first answer, including `100`; empty while there is none. */
  get status(): string {
    return this.text.slice(9, 12);
  }

  /** The status of the first answer; empty if the connection was closed without one. */
  firstStatus(): Promise<string> {
    return this.first;
  }

  /** The status of the last answer, once the connection is closed. */
  lastStatus(): Promise<string> {
    return this.last;
  }
}
