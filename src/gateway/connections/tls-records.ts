/**
 * Counts what TLS reads of a connection, and bounds what carries no data. A client may change its key without end (a
 * KeyUpdate, RFC 8446, section 4.6.3: 27 bytes, and 10 us of work), or send each byte in a record of its own. OpenSSL has
 * no bound of either, and Node reads up to 2 MiB of a connection in one turn and tells nothing of the records: one
 * connection kept a gateway busy for 0.7 s at once. So what a connection receives is read here, a piece at a time, and
 * then given to TLS.
 */
import type { Socket } from "node:net";
import { SILENT_RECORDS_BYTES_MAX, TLS_PIECE_BYTES } from "../../contracts/limits/requests.ts";

/** So many bytes of one-byte records take 0.1 ms: as long as a part of a request. */
const BYTES_OF_A_PART = 512;

/** Node's view of a connection of the system, and of the TLS above it. Undocumented, and the same from Node 20 to 24. */
interface Connection {
  reading: boolean;
  /** Of what was received, also if it was an error or the end: then it stays. */
  readonly bytesRead: number;
  onread: () => void;
  /** From now on, what is received is written into the buffer, and then `onread` is called. */
  useUserBuffer?: (buffer: Uint8Array) => void;
}

interface Tls {
  readonly _parent?: Connection;
  /** Of the data in the records. */
  readonly bytesRead: number;
  /** Gives it received bytes, of which it keeps a copy. */
  receive?: (bytes: Uint8Array) => void;
}

interface TlsSocket extends Socket {
  _handle?: Tls | null;
}

/** For all connections: TLS copies a piece before the next one is read. */
const piece = new Uint8Array(TLS_PIECE_BYTES);

/** Call this once the handshake is over. `count` is called with the parts of requests that a piece is worth. */
export function boundRecords(socket: Socket, count: (parts: number) => void): void {
  const tls = (socket as TlsSocket)._handle;
  const connection = tls?._parent;
  if (!tls?.receive || !connection?.useUserBuffer) return;
  const records = new Records(socket, tls, connection);
  connection.useUserBuffer(piece);
  connection.onread = () => count(Math.ceil(records.take() / BYTES_OF_A_PART));
}

class Records {
  private readonly socket: TlsSocket;
  private readonly tls: Tls;
  private readonly connection: Connection;
  private received: number;
  private data: number;
  private silent = 0;

  constructor(socket: TlsSocket, tls: Tls, connection: Connection) {
    this.socket = socket;
    this.tls = tls;
    this.connection = connection;
    this.received = connection.bytesRead;
    this.data = tls.bytesRead;
  }

  /** Gives TLS what was received. Returns its bytes. */
  take(): number {
    const { socket, tls, connection } = this;
    const bytes = connection.bytesRead - this.received;
    this.received = connection.bytesRead;
    if (socket._handle !== tls) return bytes;
    if (bytes === 0) this.end();
    else {
      tls.receive!(piece.subarray(0, bytes));
      this.bound(bytes);
    }
    return bytes;
  }

  private bound(bytes: number): void {
    if (this.socket._handle !== this.tls) return;
    this.silent = this.tls.bytesRead === this.data ? this.silent + bytes : 0;
    this.data = this.tls.bytesRead;
    if (this.silent > SILENT_RECORDS_BYTES_MAX) this.socket.destroy();
  }

  /** The client has ended the connection, or it broke. */
  private end(): void {
    this.connection.reading = false;
    this.socket.push(null);
    this.socket.read(0);
  }
}
