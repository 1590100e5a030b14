/**
 * An answer in pieces (decision 4.5): server-sent events, NDJSON, or the predictor's own bytes. The worker is told of
 * room when the client has taken what there was, so that a slow reader holds the producer up and nothing piles up here.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Problem } from "../contracts/errors.ts";
import { STREAM_HEARTBEAT_MS } from "../contracts/limits.ts";

const DATA = Buffer.from("data: ");
const EVENT_END = Buffer.from("\n\n");
const NEWLINE = Buffer.from("\n");
const EVENT_HEARTBEAT = Buffer.from(": \n\n");

type Format = "events" | "lines" | "raw";

const CONTENT_TYPES = {
  events: ["content-type", "text/event-stream", "cache-control", "no-cache", "x-accel-buffering", "no"],
  lines: ["content-type", "application/x-ndjson", "cache-control", "no-cache", "x-accel-buffering", "no"],
  raw: [],
} as const satisfies Record<Format, readonly string[]>;

export class StreamedAnswer {
  /** When the client last took something (performance.now()). */
  lastTakenMs = performance.now();
  private readonly response: ServerResponse;
  private readonly format: Format;
  private readonly onRoom: (bytes: number) => void;
  private readonly heartbeat: NodeJS.Timeout | undefined;
  /** Bytes of the worker's that the client has not taken yet. */
  private untaken = 0;
  /** Bytes of the body that its `content-length` leaves; undefined where it has none. */
  private left: number | undefined;

  constructor(
    response: ServerResponse,
    status: number,
    headers: readonly string[],
    format: Format,
    onRoom: (bytes: number) => void,
  ) {
    this.response = response;
    this.format = format;
    this.onRoom = onRoom;
    response.writeHead(status, [...headers, ...CONTENT_TYPES[format]]);
    this.left = announcedLength(headers);
    response.on("drain", () => this.taken());
    if (format === "raw") return;
    this.heartbeat = setInterval(() => this.beat(), STREAM_HEARTBEAT_MS).unref();
  }

  write(piece: Buffer): void {
    this.untaken += piece.length;
    const { response } = this;
    if (!this.fits(piece.length)) return this.cut();
    if (this.format === "raw") response.write(piece);
    else if (this.format === "events") response.write(Buffer.concat([DATA, piece, EVENT_END]));
    else response.write(Buffer.concat([piece, NEWLINE]));
    if (!response.writableNeedDrain) this.taken();
  }

  end(): void {
    this.abandon();
    if (this.left === undefined || this.left === 0) this.response.end();
    else this.cut();
  }

  /** Tells why in the stream's own form, and cuts the body off, so that no client takes it for whole. */
  fail(problem: Problem): void {
    this.abandon();
    const text = JSON.stringify(problem);
    if (this.format === "events") this.response.write(`event: error\ndata: ${text}\n\n`);
    if (this.format === "lines") this.response.write(`{"error":${text}}\n`);
    // Behind what was written, and without the body's last chunk.
    this.response.socket?.end();
  }

  /** The request that it answers. */
  get request(): IncomingMessage {
    return this.response.req;
  }

  /** Whether the client has not taken what there is for it. */
  get isFull(): boolean {
    return this.response.writableNeedDrain;
  }

  /** Ends without a word: the client does not read, or the body is not as long as its head says. */
  cut(): void {
    this.response.destroy();
  }

  /** Nobody listens any more. */
  abandon(): void {
    clearInterval(this.heartbeat);
  }

  /** Bytes past the announced length would be the next answer to whoever reads. */
  private fits(bytes: number): boolean {
    if (this.left === undefined) return true;
    this.left -= bytes;
    return this.left >= 0;
  }

  private taken(): void {
    this.lastTakenMs = performance.now();
    if (this.untaken === 0) return;
    const bytes = this.untaken;
    this.untaken = 0;
    this.onRoom(bytes);
  }

  /** A comment or an empty line, for proxies that cut off what is silent; not into a full socket. */
  private beat(): void {
    if (this.response.writableNeedDrain) return;
    this.response.write(this.format === "events" ? EVENT_HEARTBEAT : NEWLINE);
  }
}

/** Of headers as names and values in turn. */
function announcedLength(headers: readonly string[]): number | undefined {
  const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === "content-length");
  return at < 0 ? undefined : Number(headers[at + 1]);
}
