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

/** Undefined if more bytes must come. */
function batchOfRow(data: Buffer, at: number): number | undefined {
  const head = data.subarray(at, at + HEAD_BYTES_MAX);
  const begin = head.subarray(0, HEAD.length);
  let batchIndex = 0;
  for (let i = HEAD.length; i < head.length; i++) {
    const digit = head[i]! - ZERO;
    if (digit < 0 || digit > 9) {
      if (i > HEAD.length && begin.equals(HEAD)) return batchIndex;
      break;
    }
    batchIndex = 10 * batchIndex + digit;
  }
  if (head.length === HEAD_BYTES_MAX || !HEAD.subarray(0, begin.length).equals(begin) || hasOther(head))
    throw new NotRows(`this is no row of an output: ${head.toString()}`);
  return undefined;
}

/** Whether there is something else than digits after the head. */
function hasOther(head: Buffer): boolean {
  return head.subarray(HEAD.length).some((byte) => byte < ZERO || byte > ZERO + 9);
}
