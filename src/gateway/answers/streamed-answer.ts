/**
 * A response in pieces (docs/contract/predictor.md#streams): server-sent events, NDJSON, text, or the predictor's own
 * bytes. The worker gets credit for the pieces that the client has taken. So a slow reader slows the producer down, and
 * nothing piles up here. Pieces of one turn of the event loop leave in one write: a write for each small one would
 * block the event loop.
 */
import type { ServerResponse } from "node:http";
import { contain } from "../../base/boundary.ts";
import type { Problem } from "../../contracts/errors.ts";
import {
  STREAM_PIECE_BYTES,
  STREAM_UNTAKEN_BYTES_MAX,
  STREAM_WRITE_BYTES,
} from "../../contracts/limits/frames.ts";
import { STREAM_HEARTBEAT_MS } from "../../contracts/limits/responses.ts";
import type { StreamHead } from "../../protocol/messages.ts";
import { unreadAnswers } from "./unread-answers.ts";

const DATA = Buffer.from("data: ");
const EVENT_END = Buffer.from("\n\n");
const NEWLINE = Buffer.from("\n");
const EVENT_HEARTBEAT = Buffer.from(": \n\n");

/** Each of `events` has a JSON value. Each of `text events` has a text, which may have several lines. */
type Format = "events" | "text events" | "lines" | "text" | "raw";

const UNBUFFERED = ["cache-control", "no-cache", "x-accel-buffering", "no"] as const;
const CONTENT_TYPES = {
  events: ["content-type", "text/event-stream", ...UNBUFFERED],
  "text events": ["content-type", "text/event-stream", ...UNBUFFERED],
  lines: ["content-type", "application/x-ndjson", ...UNBUFFERED],
  text: ["content-type", "text/plain; charset=utf-8", ...UNBUFFERED],
  raw: [],
} as const satisfies Record<Format, readonly string[]>;

/** How a worker's pieces are sent. `wantsEvents`: the client asked for server-sent events. */
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
  private readonly onTaken: (bytes: number) => void;
  private readonly heartbeat: NodeJS.Timeout | undefined;
  /** Bytes of the worker's window that the pieces use which the client has not taken yet. */
  private untaken = 0;
  /** Written at the end of this turn of the event loop. */
  private parts: Buffer[] = [];
  private partsBytes = 0;
  /** Bytes still missing from the body by its `content-length`; undefined without that header. */
  private left: number | undefined;

  constructor(
    response: ServerResponse,
    status: number,
    headers: readonly string[],
    format: Format,
    onTaken: (bytes: number) => void,
  ) {
    this.response = response;
    this.format = format;
    this.onTaken = onTaken;
    response.writeHead(status, [...headers, ...CONTENT_TYPES[format]]);
    this.left = announcedLength(headers);
    response.on("drain", () => this.taken());
    if (this.isPlain) return;
    this.heartbeat = setInterval(() => this.beat(), STREAM_HEARTBEAT_MS).unref();
  }

  write(piece: Buffer): void {
    this.untaken += piece.length + STREAM_PIECE_BYTES;
    if (!this.fits(piece.length)) return this.cut();
    if (this.parts.length === 0) setImmediate(() => contain("the pieces of a stream", () => this.flush()));
    if (this.isPlain) this.parts.push(piece);
    else if (this.format === "lines") this.parts.push(piece, NEWLINE);
    else this.parts.push(DATA, this.format === "events" ? piece : asLines(piece), EVENT_END);
    this.partsBytes += piece.length;
    if (this.partsBytes >= STREAM_WRITE_BYTES) this.flush();
  }

  end(): void {
    this.flush();
    this.abandon();
    if (this.left !== undefined && this.left !== 0) return this.cut();
    this.response.end();
    unreadAnswers.add(this.response);
  }

  /** Reports the error in the stream's own form and cuts the body off, so that no client considers it complete. */
  fail(problem: Problem): void {
    this.flush();
    this.abandon();
    const text = JSON.stringify(problem);
    if (this.hasEvents) this.response.write(`event: error\ndata: ${text}\n\n`);
    if (this.format === "lines") this.response.write(`{"error":${text}}\n`);
    // Ends the connection after what was written, without the body's last chunk.
    this.response.socket?.end();
    unreadAnswers.add(this.response);
  }

  /** Whether no worker that keeps to its credit sends another piece now. */
  get isPastCredit(): boolean {
    return this.untaken > STREAM_UNTAKEN_BYTES_MAX;
  }

  /** Whether the client has not yet taken what was written. */
  get isFull(): boolean {
    return this.response.writableNeedDrain;
  }

  /** Ends without a message: the client does not read, or the body does not have the length in its head. */
  cut(): void {
    this.response.destroy();
  }

  /** Stops the heartbeat: the stream ends, or nobody listens any more. */
  abandon(): void {
    clearInterval(this.heartbeat);
  }

  /** The pieces are the body; nothing may come between them. */
  private get isPlain(): boolean {
    return this.format === "raw" || this.format === "text";
  }

  private get hasEvents(): boolean {
    return this.format === "events" || this.format === "text events";
  }

  /** The client would read bytes past the announced length as the next response. */
  private fits(bytes: number): boolean {
    if (this.left === undefined) return true;
    this.left -= bytes;
    return this.left >= 0;
  }

  private flush(): void {
    const { response, parts } = this;
    if (parts.length === 0) return;
    this.parts = [];
    this.partsBytes = 0;
    if (response.destroyed) return;
    response.write(parts.length === 1 ? parts[0]! : Buffer.concat(parts));
    if (!response.writableNeedDrain) this.taken();
  }

  private taken(): void {
    this.lastTakenMs = performance.now();
    if (this.untaken === 0) return;
    const bytes = this.untaken;
    this.untaken = 0;
    this.onTaken(bytes);
  }

  /** A comment or an empty line, for proxies that cut off silent streams. Nothing is written into a full socket. */
  private beat(): void {
    if (this.response.writableNeedDrain) return;
    this.response.write(this.hasEvents ? EVENT_HEARTBEAT : NEWLINE);
  }
}

/**
 * The data of an event: each line of the text becomes a line of the event. In Latin-1 each byte is one character, so no
 * byte changes.
 */
function asLines(piece: Buffer): Buffer {
  return Buffer.from(piece.toString("latin1").replaceAll(/\r\n|\r|\n/g, "\ndata: "), "latin1");
}

/** `headers` are names and values in turn. */
function announcedLength(headers: readonly string[]): number | undefined {
  const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === "content-length");
  return at < 0 ? undefined : Number(headers[at + 1]);
}
