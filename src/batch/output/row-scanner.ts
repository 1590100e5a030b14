/** Finds the batches in the rows of a part, which come in chunks of any length. Pure. */

/** A part has something else than rows. */
export class NotRows extends Error {}

/** Rows of one batch, or a piece of them. */
export interface BatchPiece {
  batchIndex: number;
  bytes: Buffer;
}

const HEAD = Buffer.from('{"batch_index":');
/** A head has the number's digits, at most ten, and what follows them. */
const HEAD_BYTES_MAX = HEAD.length + 11;
const NEWLINE = 10;
const ZERO = 48;

export class RowScanner {
  /** The begin of a row whose head has not come completely. */
  private carry = Buffer.alloc(0);
  private batchIndex = -1;
  private isInRow = false;

  /** The pieces in the next chunk, in order. They are views of it. Throws NotRows if it has something else. */
  scan(chunk: Buffer): BatchPiece[] {
    const data = this.carry.length === 0 ? chunk : Buffer.concat([this.carry, chunk]);
    this.carry = Buffer.alloc(0);
    const pieces: BatchPiece[] = [];
    let begin = 0;
    const cut = (end: number) => {
      if (end > begin) pieces.push({ batchIndex: this.batchIndex, bytes: data.subarray(begin, end) });
      begin = end;
    };
    for (let at = 0; at < data.length; ) {
      if (!this.isInRow) {
        const batchIndex = batchOfRow(data, at);
        if (batchIndex === undefined) {
          cut(at);
          this.carry = Buffer.from(data.subarray(at));
          return pieces;
        }
        if (batchIndex !== this.batchIndex) cut(at);
        this.batchIndex = batchIndex;
      }
      const newline = data.indexOf(NEWLINE, at);
      this.isInRow = newline < 0;
      at = newline < 0 ? data.length : newline + 1;
    }
    cut(data.length);
    return pieces;
  }

  /** Throws NotRows if the last row is not complete. */
  end(): void {
    if (this.isInRow || this.carry.length > 0) throw new NotRows("the last row is cut off");
  }
}

/** The batch of the row that begins at `at`. Undefined if more bytes must come. Throws if no row begins there. */
export function batchOfRow(data: Buffer, at: number): number | undefined {
  const end = Math.min(data.length, at + HEAD_BYTES_MAX);
  const digits = at + HEAD.length;
  for (let i = at; i < digits && i < end; i++) if (data[i] !== HEAD[i - at]) throw noRow(data, at);
  let batchIndex = 0;
  for (let i = digits; i < end; i++) {
    const digit = data[i]! - ZERO;
    if (digit >= 0 && digit <= 9) batchIndex = 10 * batchIndex + digit;
    else if (i > digits) return batchIndex;
    else throw noRow(data, at);
  }
  if (end - at === HEAD_BYTES_MAX) throw noRow(data, at);
  return undefined;
}

function noRow(data: Buffer, at: number): Error {
  return new NotRows(`this is no row of an output: ${data.toString("utf8", at, at + HEAD_BYTES_MAX)}`);
}

/** How many lines end in these bytes. */
export function countLines(bytes: Buffer): number {
  let found = 0;
  for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) found++;
  return found;
}
