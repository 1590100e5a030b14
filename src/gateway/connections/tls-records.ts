/**
 * Reads TLS connections, so that nothing a client sends causes work without bound in one turn of the event loop: Node
 * reads up to 2 MiB of a connection at once, and tells nothing of the records. Here a piece is read, and then given to
 * TLS. Those of a handshake are given in turns. Those after it count as work of a turn, also if they carry no data: a
 * client may change its key without end (a KeyUpdate, RFC 8446, section 4.6.3: 27 bytes, and 10 us of work), or send each
 * byte in a record of its own. OpenSSL has no bound of either; here both have one.
 */
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import {
  HANDSHAKE_BYTES_MAX,
  SILENT_RECORDS_BYTES_MAX,
  TLS_PIECE_BYTES,
} from "../../contracts/limits/requests.ts";

/** So many bytes of one-byte records take 0.1 ms: as long as a part of a request. */
const BYTES_OF_A_PART = 512;

/** A client that has ended its side, and takes nothing of a response for so long, has left. */
const LEAVER_MS = 3_000;

/** Node's view of a connection of the system, and of the TLS above it. Undocumented, and the same from Node 20 to 24. */
interface Connection {
  reading: boolean;
  /** Of what was received, also if it was an error or the end: then it stays. */
  readonly bytesRead: number;
  readonly bytesWritten: number;
  onread: () => void;
  /** From now on, what is received is written into the buffer, and then `onread` is called. */
  useUserBuffer?: (buffer: Uint8Array) => void;
  readStop: () => void;
  readStart: () => void;
}

interface Tls {
  readonly _parent?: Connection;
  /** Of the data in the records. */
  readonly bytesRead: number;
  /** Gives it received bytes, of which it keeps a copy. */
  receive?: (bytes: Uint8Array) => void;
}

type HandledSocket = TLSSocket & { _handle?: Tls | null };

export interface ReadingRules {
  /** Calls `give` in a turn of handshakes. */
  inTurn: (give: () => void) => void;
  /** A piece came after the handshake, which takes as long as so many parts of requests. */
  count: (parts: number) => void;
}

/** For all connections: TLS copies a piece, or it is copied to wait, before the next one is read. */
const piece = new Uint8Array(TLS_PIECE_BYTES);

/** Call this as soon as TLS has the connection. Gives it what the connection has sent before. */
export function readRecords(socket: TLSSocket, before: Socket, rules: ReadingRules): void {
  const tls = (socket as HandledSocket)._handle;
  const connection = tls?._parent;
  if (!tls?.receive || !connection?.useUserBuffer) return;
  const records = new Records(socket, tls, connection, rules);
  connection.useUserBuffer(piece);
  connection.onread = () => records.read();
  const sent = before.read() as Buffer | null;
  if (sent !== null) records.give(sent);
}

class Records {
  private readonly socket: HandledSocket;
  private readonly tls: Tls;
  private readonly connection: Connection;
  private readonly rules: ReadingRules;
  private received: number;
  private data: number;
  private silent = 0;
  private isSecure = false;

  constructor(socket: HandledSocket, tls: Tls, connection: Connection, rules: ReadingRules) {
    this.socket = socket;
    this.tls = tls;
    this.connection = connection;
    this.rules = rules;
    this.received = connection.bytesRead;
    this.data = tls.bytesRead;
    socket.once("secure", () => {
      this.isSecure = true;
      this.silent = 0;
    });
  }

  /** The connection has written into the piece. */
  read(): void {
    const bytes = this.connection.bytesRead - this.received;
    this.received = this.connection.bytesRead;
    if (this.isClosed) return;
    if (bytes === 0) return this.end();
    const sent = piece.subarray(0, bytes);
    if (!this.isSecure) return this.wait(Buffer.from(sent));
    this.give(sent);
    this.rules.count(Math.ceil(bytes / BYTES_OF_A_PART));
  }

  give(bytes: Uint8Array): void {
    this.tls.receive!(bytes);
    if (this.isClosed) return;
    this.silent = this.tls.bytesRead === this.data ? this.silent + bytes.length : 0;
    this.data = this.tls.bytesRead;
    if (this.silent > (this.isSecure ? SILENT_RECORDS_BYTES_MAX : HANDSHAKE_BYTES_MAX)) this.socket.destroy();
  }

  /** Nothing is read until the turn. Then it is read again first, because TLS may stop it. */
  private wait(bytes: Uint8Array): void {
    this.connection.readStop();
    this.rules.inTurn(() => {
      if (this.isClosed) return;
      this.connection.readStart();
      this.give(bytes);
    });
  }

  private get isClosed(): boolean {
    return this.socket._handle !== this.tls;
  }

  /** The client has ended the connection, or it broke. */
  private end(): void {
    if (!this.isSecure) {
      this.socket.destroy();
      return;
    }
    this.connection.reading = false;
    this.socket.push(null);
    this.socket.read(0);
    this.watchLeaver();
  }

  /** Node tells a broken connection from an ended one only where it reads itself. */
  private watchLeaver(): void {
    let written = this.connection.bytesWritten;
    const look = () => {
      if (this.socket.writableLength > 0 && this.connection.bytesWritten === written) this.socket.destroy();
      written = this.connection.bytesWritten;
    };
    const timer = setInterval(look, LEAVER_MS).unref();
    this.socket.once("close", () => clearInterval(timer));
  }
}
