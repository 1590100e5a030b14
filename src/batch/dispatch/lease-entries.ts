/**
 * Turns lines into lease entries (docs/worker-protocol.md): a batch's index, its length, and its lines as a JSON array,
 * `[` line `,` line `]`. The entries of a segment are adjacent, so that consecutive batches are leased without a copy.
 */
import { LEASE_ENTRY_HEADER_BYTES } from "../../protocol/messages.ts";

const NEWLINE = 0x0a;
const COMMA = 0x2c;
const OPENING = 0x5b;
const CLOSING = 0x5d;
/** The header and the opening bracket. The closing bracket replaces the last newline. */
const ADDED_BYTES = LEASE_ENTRY_HEADER_BYTES + 1;

/** Bytes of the entries of `batchCount` batches. `lineBytes`: bytes of their lines, newlines included. */
export function entriesBytes(batchCount: number, lineBytes: number): number {
  return batchCount * ADDED_BYTES + lineBytes;
}

/**
 * Writes the entries to the beginning of `target`. Returns where each begins, then where the last one ends. Each line
 * of `lines` must end with a newline; newlines inside a batch become commas, in place. Undefined if there are too few
 * lines for `batchCount` batches.
 */
export function writeEntries(
  lines: Buffer,
  firstBatch: number,
  batchCount: number,
  batchSize: number,
  target: Buffer,
): Uint32Array | undefined {
  const starts = new Uint32Array(batchCount + 1);
  let from = 0;
  let at = 0;
  for (let batch = 0; batch < batchCount; batch++) {
    const end = joinLines(lines, from, batchSize);
    if (end === from) return undefined;
    target.writeUInt32LE(firstBatch + batch, at);
    target.writeUInt32LE(end - from + 1, at + 4);
    target[at + LEASE_ENTRY_HEADER_BYTES] = OPENING;
    at += ADDED_BYTES;
    lines.copy(target, at, from, end - 1);
    at += end - from;
    target[at - 1] = CLOSING;
    starts[batch + 1] = at;
    from = end;
  }
  return starts;
}

/** Turns the newlines between up to `count` lines from `from` on into commas. Returns where the last line ends. */
function joinLines(lines: Buffer, from: number, count: number): number {
  let newline = from - 1;
  for (let line = 0; line < count; line++) {
    const next = lines.indexOf(NEWLINE, newline + 1);
    if (next < 0) break;
    if (line > 0) lines[newline] = COMMA;
    newline = next;
  }
  return newline + 1;
}
