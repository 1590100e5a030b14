/**
 * Texts that wait to become the data of server-sent events, in order. They are taken in slices, because a line end of
 * one byte becomes seven. Pure.
 */
import { STREAM_PIECE_BYTES, TEXT_OF_A_TURN_BYTES } from "../../contracts/limits/frames.ts";
import { DATA, EVENT_END } from "./stream-format.ts";

const NEXT_LINE = Buffer.from("\ndata: ");
const [LINE_FEED, RETURN] = [10, 13];

export class EventTexts {
  /** The parts of each text that are left. */
  private readonly texts: Buffer[][] = [];
  private isBegun = false;
  private isAfterReturn = false;
  /** Bytes of text that are left. */
  private bytes = 0;

  get isEmpty(): boolean {
    return this.texts.length === 0;
  }

  /** What these texts use of their worker's window. */
  get windowBytes(): number {
    return this.bytes + this.texts.length * STREAM_PIECE_BYTES;
  }

  /** `parts` together are one text. */
  push(parts: readonly Buffer[]): void {
    this.texts.push([...parts]);
    for (const part of parts) this.bytes += part.length;
  }

  /** The next slice, to be written as it is, and the bytes of text in it. Call only if there is a text. */
  next(): { event: Buffer; bytes: number } {
    const text = this.texts[0]!;
    const slice = firstSlice(text);
    const parts: Buffer[] = this.isBegun ? [] : [DATA];
    parts.push(eventLines(slice, this.isAfterReturn));
    if (slice.length > 0) this.isAfterReturn = slice.at(-1) === RETURN;
    this.bytes -= slice.length;
    this.isBegun = text.length > 0;
    if (!this.isBegun) {
      parts.push(EVENT_END);
      this.texts.shift();
      this.isAfterReturn = false;
    }
    return { event: Buffer.concat(parts), bytes: slice.length };
  }
}

/** Removes the slice from `parts`. */
function firstSlice(parts: Buffer[]): Buffer {
  const part = parts[0]!;
  if (part.length <= TEXT_OF_A_TURN_BYTES) return parts.shift()!;
  parts[0] = part.subarray(TEXT_OF_A_TURN_BYTES);
  return part.subarray(0, TEXT_OF_A_TURN_BYTES);
}

/**
 * The data of an event: each line of the text becomes a line of the event, and no other byte changes. `isAfterReturn`:
 * the text before ended with a carriage return, to which a line feed belongs. It takes 1 to 15 ns for each byte.
 */
export function eventLines(text: Buffer, isAfterReturn = false): Buffer {
  const bytes = lineBytes(text, isAfterReturn);
  if (bytes === text.length) return text;
  const lines = Buffer.allocUnsafe(bytes);
  let before = isAfterReturn ? RETURN : 0;
  for (let i = 0, at = 0; i < text.length; i++) {
    const byte = text[i]!;
    if (byte !== LINE_FEED && byte !== RETURN) lines[at++] = byte;
    else if (byte === RETURN || before !== RETURN) at = putNextLine(lines, at);
    before = byte;
  }
  return lines;
}

/** The length of the lines: that of the text only if it has no line end. */
function lineBytes(text: Buffer, isAfterReturn: boolean): number {
  let before = isAfterReturn ? RETURN : 0;
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const byte = text[i]!;
    if (byte === RETURN || (byte === LINE_FEED && before !== RETURN)) bytes += NEXT_LINE.length - 1;
    else if (byte === LINE_FEED) bytes--;
    before = byte;
  }
  return bytes;
}

/** Faster than `copy`, for so few bytes. */
function putNextLine(lines: Buffer, at: number): number {
  for (let i = 0; i < NEXT_LINE.length; i++) lines[at + i] = NEXT_LINE[i]!;
  return at + NEXT_LINE.length;
}
