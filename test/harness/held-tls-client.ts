/** A TLS client that sends its ClientHello, and holds back everything after it until it is released. */
import { connect } from "node:net";
import { Duplex } from "node:stream";
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";

export class HeldTlsClient {
  readonly tls: TLSSocket;
  /** The client considers the handshake over. */
  isSecure = false;
  private readonly socket;
  private readonly partBytes: number;
  private readonly held: (() => Promise<void>)[] = [];
  private messages = 0;
  private isReleased = false;

  /** All is sent in parts of so many bytes. */
  constructor(port: number, offer: ConnectionOptions, partBytes = Number.POSITIVE_INFINITY) {
    this.partBytes = partBytes;
    this.socket = connect({ port, host: "127.0.0.1", noDelay: true }).on("error", () => {});
    const between = new Duplex({
      read: () => {},
      write: (sent: Buffer, _, next) => {
        const send = () => this.send(sent).then(() => next(), next);
        if (this.messages++ === 0 || this.isReleased) return send();
        this.held.push(send);
      },
    });
    this.socket.on("data", (data) => between.push(data)).on("close", () => between.push(null));
    this.tls = connectTls({ socket: between, rejectUnauthorized: false, ...offer });
    this.tls.on("secureConnect", () => (this.isSecure = true)).on("error", () => {});
  }

  get isHolding(): boolean {
    return this.held.length > 0;
  }

  release(): void {
    this.isReleased = true;
    for (const send of this.held.splice(0)) send();
  }

  destroy(): void {
    this.tls.destroy();
    this.socket.destroy();
  }

  private async send(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length; at += this.partBytes) {
      const part = bytes.subarray(at, Math.min(at + this.partBytes, bytes.length));
      await new Promise<void>((resolve) => this.socket.write(part, () => setImmediate(resolve)));
    }
  }
}
