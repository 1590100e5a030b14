/**
 * An answer in pieces (docs/contract/predictor.md#streams): server-sent events, NDJSON, text, or the predictor's own
 * bytes. The worker is told of room when the client has taken what there was, so that a slow reader holds the producer
 * up and nothing piles up here.
 */
import type { ServerResponse } from "node:http";
import type { Problem } from "../contracts/errors.ts";
import { STREAM_HEARTBEAT_MS } from "../contracts/limits.ts";
import type { StreamHead } from "../protocol/messages.ts";

const DATA = Buffer.from("data: ");
const EVENT_END = Buffer.from("\n\n");
const NEWLINE = Buffer.from("\n");
const EVENT_HEARTBEAT = Buffer.from(": \n\n");

/** `events` have a JSON value each, `text events` a text, which may have several lines. */
type Format = "events" | "text events" | "lines" | "text" | "raw";

const UNBUFFERED = ["cache-control", "no-cache", "x-accel-buffering", "no"] as const;
const CONTENT_TYPES = {
  events: ["content-type", "text/event-stream", ...UNBUFFERED],
  "text events": ["content-type", "text/event-stream", ...UNBUFFERED],
  lines: ["content-type", "application/x-ndjson", ...UNBUFFERED],
  text: ["content-type", "text/plain; charset=utf-8", ...UNBUFFERED],
  raw: [],
} as const satisfies Record<Format, readonly string[]>;

/** What a worker's pieces become, for a client that wants server-sent events or does not. */
export function bodyFormat(format: StreamHead["format"], wantsEvents: boolean): Format {
  if (format === "raw") return "raw";
  if (format === "text") return wantsEvents ? "text events" : "text";
  return wantsEvents ? "events" : "lines";
}

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
    if (this.isPlain) return;
    this.heartbeat = setInterval(() => this.beat(), STREAM_HEARTBEAT_MS).unref();
  }

  write(piece: Buffer): void {
    this.untaken += piece.length;
    const { response } = this;
    if (!this.fits(piece.length)) return this.cut();
    if (this.isPlain) response.write(piece);
    else if (this.format === "lines") response.write(Buffer.concat([piece, NEWLINE]));
    else response.write(Buffer.concat([DATA, this.format === "events" ? piece : asLines(piece), EVENT_END]));
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
    if (this.hasEvents) this.response.write(`event: error\ndata: ${text}\n\n`);
    if (this.format === "lines") this.response.write(`{"error":${text}}\n`);
    // Behind what was written, and without the body's last chunk.
    this.response.socket?.end();
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

  /** The pieces are the body, and nothing goes between them. */
  private get isPlain(): boolean {
    return this.format === "raw" || this.format === "text";
  }

  private get hasEvents(): boolean {
    return this.format === "events" || this.format === "text events";
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
    this.response.write(this.hasEvents ? EVENT_HEARTBEAT : NEWLINE);
  }
}

/** The data of an event: each line of the text is a line of the event. In Latin-1 each byte is a character, and stays as it is. */
function asLines(piece: Buffer): Buffer {
  return Buffer.from(piece.toString("latin1").replaceAll(/\r\n|\r|\n/g, "\ndata: "), "latin1");
}

/** Of headers as names and values in turn. */
function announcedLength(headers: readonly string[]): number | undefined {
  const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === "content-length");
  return at < 0 ? undefined : Number(headers[at + 1]);
}
