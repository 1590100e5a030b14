/**
 * A response in pieces (docs/contract/predictor.md#streams): server-sent events, NDJSON, text, or the predictor's own
 * bytes. The worker gets credit for what the client has taken, so a slow reader slows the producer down. What arrives
 * meanwhile waits here, and counts as unread. Pieces of one turn leave in one write: many would block the event loop.
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
import { RESPONSE_TURN } from "../connections/response-turn.ts";
import { HeldTexts } from "./held-texts.ts";
import {
  CONTENT_TYPES,
  DATA,
  EVENT_END,
  EVENT_HEARTBEAT,
  NEWLINE,
  type StreamFormat,
} from "./stream-format.ts";
import { textTurn } from "./text-turn.ts";
import { unreadAnswers } from "./unread-answers.ts";
import { WaitingParts } from "./waiting-parts.ts";
import { writeHead } from "./write-response.ts";

export class StreamedAnswer {
  /** All pieces have come, and the body has its length. */
  isComplete = false;
  /** When the client last took something (performance.now()). */
  lastTakenMs = performance.now();
  private readonly response: ServerResponse;
  private readonly format: StreamFormat;
  private readonly onTaken: (bytes: number) => void;
  private readonly heartbeat: NodeJS.Timeout | undefined;
  /** Bytes of the worker's window that the pieces use which the client has not taken yet. */
  private untaken = 0;
  /** Written at the end of this turn of the event loop, or once the client has taken what was written before. */
  private readonly parts = new WaitingParts();
  /** Made for the first text that must wait; while it has texts, all later pieces wait too. */
  private held: HeldTexts | undefined;
  /** Ends the response after the texts that wait. */
  private ending: (() => void) | undefined;
  /** Bytes still missing from the body by its `content-length`; undefined without that header. */
  private left: number | undefined;

  constructor(
    response: ServerResponse,
    status: number,
    headers: readonly string[],
    format: StreamFormat,
    onTaken: (bytes: number) => void,
  ) {
    this.response = response;
    this.format = format;
    this.onTaken = onTaken;
    writeHead(response, status, [...headers, ...CONTENT_TYPES[format]]);
    this.left = announcedLength(headers);
    for (const event of ["drain", RESPONSE_TURN]) response.on(event, () => this.proceed());
    // So that this response counts as unread from its head on.
    if (this.waitsForTurn) response.flushHeaders();
    if (this.isPlain) return;
    this.heartbeat = setInterval(() => this.beat(), STREAM_HEARTBEAT_MS).unref();
  }

  write(piece: Buffer): void {
    if (!this.accept(piece.length)) return;
    if (this.format === "text events" && (this.isHolding || !textTurn.take(piece.length)))
      return this.hold([piece]);
    if (this.parts.isEmpty) setImmediate(() => contain("the pieces of a stream", () => this.flush()));
    this.parts.push(piece, this.format);
    if (this.parts.bytes >= STREAM_WRITE_BYTES) this.flush();
  }

  /** Writes a piece of several frames, without joining them: that would take 0.4 s for the longest. */
  writeLong(frames: readonly Buffer[]): void {
    if (!this.accept(frames.reduce((sum, frame) => sum + frame.length, 0))) return;
    if (this.format === "text events") return this.hold(frames);
    this.writeParts();
    if (this.response.destroyed) return;
    if (this.format === "events") this.response.write(DATA);
    for (const frame of frames) this.response.write(frame);
    if (!this.isPlain) this.response.write(this.format === "events" ? EVENT_END : NEWLINE);
    this.written();
  }

  end(): void {
    this.isComplete = this.left === undefined || this.left === 0;
    this.close(() => {
      if (!this.isComplete) return this.cut();
      this.response.end();
      unreadAnswers.add(this.response);
    });
  }

  /** Reports the error in the stream's own form and cuts the body off, so that no client considers it complete. */
  fail(problem: Problem): void {
    this.close(() => {
      const text = JSON.stringify(problem);
      if (this.hasEvents) this.response.write(`event: error\ndata: ${text}\n\n`);
      if (this.format === "lines") this.response.write(`{"error":${text}}\n`);
      // Ends the connection after what was written, without the body's last chunk.
      const endConnection = () => this.response.socket?.end();
      if (this.waitsForTurn) this.response.once(RESPONSE_TURN, endConnection);
      else endConnection();
      unreadAnswers.add(this.response);
    });
  }

  /** Whether no worker that keeps to its credit sends another piece now. */
  get isPastCredit(): boolean {
    return this.untaken > STREAM_UNTAKEN_BYTES_MAX;
  }

  /** Whether there is something that the client has not yet taken. */
  get isFull(): boolean {
    return !this.isTaken || this.isHolding;
  }

  /** Whether an earlier response of the same connection is not complete: it is that one which its client must take. */
  get waitsForTurn(): boolean {
    return this.response.socket === null;
  }

  /** Bytes that wait here, for `UnreadAnswers`. */
  get waitingBytes(): number {
    return this.parts.windowBytes + (this.held?.texts.windowBytes ?? 0);
  }

  /** Ends without a message: the client does not read, or the body does not have the length in its head. */
  cut(): void {
    this.response.destroy();
    // A response that waits for its turn has no connection yet that would end with it.
    if (this.waitsForTurn) this.response.req.socket.destroy();
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
    return this.format.endsWith("events");
  }

  /** Counts a piece; false if it may not be sent. */
  private accept(bytes: number): boolean {
    this.untaken += bytes + STREAM_PIECE_BYTES;
    if (this.fits(bytes)) return true;
    this.cut();
    return false;
  }

  /** The client would read bytes past the announced length as the next response. */
  private fits(bytes: number): boolean {
    if (this.left === undefined) return true;
    this.left -= bytes;
    return this.left >= 0;
  }

  /** Whether the client has taken all that was written. */
  private get isTaken(): boolean {
    return !this.response.writableNeedDrain && !this.waitsForTurn;
  }

  /** The client has taken something, or the response's turn has come. */
  private proceed(): void {
    if (!this.isTaken) return;
    this.taken();
    this.flush();
  }

  /** Writes the parts, unless they must wait for the client. */
  private flush(): void {
    if (this.parts.isEmpty) return;
    if (!this.isTaken && !this.response.destroyed) return unreadAnswers.add(this.response, this);
    this.writeParts();
  }

  private writeParts(): void {
    if (this.parts.isEmpty) return;
    const part = this.parts.take();
    if (this.response.destroyed) return;
    this.response.write(part);
    this.written();
  }

  private written(): void {
    if (this.isTaken) this.taken();
    else unreadAnswers.add(this.response, this);
  }

  private get isHolding(): boolean {
    return this.held?.texts.isEmpty === false;
  }

  /** Keeps the parts of one text for later. */
  private hold(text: readonly Buffer[]): void {
    const isFirst = !this.isHolding;
    this.held ??= new HeldTexts(this.response, () => this.sliceWritten());
    this.held.texts.push(text);
    this.writeParts();
    if (isFirst) this.held.begin();
  }

  private sliceWritten(): void {
    this.written();
    if (this.isHolding) unreadAnswers.add(this.response, this);
    else this.ending?.();
  }

  /** After the last piece. */
  private close(end: () => void): void {
    this.writeParts();
    this.abandon();
    if (this.isHolding) this.ending = end;
    else end();
  }

  private taken(): void {
    this.lastTakenMs = performance.now();
    const bytes = this.untaken - this.waitingBytes;
    if (bytes === 0) return;
    this.untaken -= bytes;
    if (this.ending === undefined) this.onTaken(bytes);
  }

  /**
   * A comment or an empty line, for proxies that cut off silent streams. Nothing is written into a full socket, or into
   * a text.
   */
  private beat(): void {
    if (this.isFull) return;
    this.response.write(this.hasEvents ? EVENT_HEARTBEAT : NEWLINE);
  }
}

/** `headers` are names and values in turn. */
function announcedLength(headers: readonly string[]): number | undefined {
  const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === "content-length");
  return at < 0 ? undefined : Number(headers[at + 1]);
}
