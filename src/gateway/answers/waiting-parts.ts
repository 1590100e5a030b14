/** Pieces of a stream that are not written yet, in the form in which they will be. */
import { STREAM_PIECE_BYTES } from "../../contracts/limits/frames.ts";
import { eventLines } from "./event-texts.ts";
import { DATA, EVENT_END, NEWLINE, type StreamFormat } from "./stream-format.ts";

export class WaitingParts {
  private parts: Buffer[] = [];
  /** Bytes of the pieces. */
  bytes = 0;
  /** What they use of their worker's window. */
  windowBytes = 0;

  get isEmpty(): boolean {
    return this.parts.length === 0;
  }

  push(piece: Buffer, format: StreamFormat): void {
    if (format === "lines") this.parts.push(piece, NEWLINE);
    else if (format === "events") this.parts.push(DATA, piece, EVENT_END);
    else if (format === "text events") this.parts.push(DATA, eventLines(piece), EVENT_END);
    else this.parts.push(piece);
    this.bytes += piece.length;
    this.windowBytes += piece.length + STREAM_PIECE_BYTES;
  }

  /** Removes and returns all, as one part. */
  take(): Buffer {
    const { parts } = this;
    this.parts = [];
    this.bytes = 0;
    this.windowBytes = 0;
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  }
}
