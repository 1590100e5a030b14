/**
 * Cuts the rows of some batches out of a part, which comes in chunks of any length. Rows are in the order of batches, so
 * a chunk is searched, not read row by row: most chunks pass as they are. Pure.
 */
import { batchOfRow } from "../output/row-scanner.ts";

const NEWLINE = 10;
const NOTHING = Buffer.alloc(0);

/** The rows of a chunk that begin in it and have complete heads: from `begin` to before `end`. */
interface Rows {
  data: Buffer;
  begin: number;
  end: number;
  /** The batch of the last one; undefined if there is none. */
  lastBatch: number | undefined;
}

export class RowRange {
  /** The first batch that may not be complete yet: that of the last row that began. */
  next: number;
  /** No more rows of the range can come. */
  isDone = false;
  private readonly first: number;
  private readonly end: number;
  /** The begin of a row whose head has not come completely. */
  private carry = NOTHING;
  /** Whether the next chunk begins inside of a row, and whether the rows that came last are wanted. */
  private isInRow = false;
  private isWanted = false;

  /** The batches from `first` to the one before `end`. */
  constructor(first: number, end: number) {
    this.first = first;
    this.end = end;
    this.next = first;
  }

  /** The bytes of the next chunk that are of the range, perhaps none: a view. Throws if they are no rows. */
  cut(chunk: Buffer): Buffer {
    const data = this.carry.length === 0 ? chunk : Buffer.concat([this.carry, chunk]);
    const begin = this.isInRow ? data.indexOf(NEWLINE) + 1 : 0;
    if (this.isInRow && begin === 0) return this.isWanted ? data : NOTHING;
    const rows = rowsOf(data, begin);
    const from = this.isInRow && this.isWanted ? 0 : firstFrom(rows, this.first);
    const to = firstFrom(rows, this.end);
    this.isDone = to < rows.end;
    this.carry = Buffer.from(data.subarray(rows.end));
    this.isInRow = rows.end > 0 && data[rows.end - 1] !== NEWLINE;
    if (rows.lastBatch !== undefined) {
      this.isWanted = rows.lastBatch >= this.first;
      this.next = Math.max(this.next, Math.min(rows.lastBatch, this.end));
    }
    return data.subarray(from, to);
  }
}

function rowsOf(data: Buffer, begin: number): Rows {
  const last = begin === data.length ? begin : startOfLine(data, data.length - 1, begin);
  const lastBatch = last === data.length ? undefined : batchOfRow(data, last);
  if (lastBatch !== undefined) return { data, begin, end: data.length, lastBatch };
  if (last === begin) return { data, begin, end: begin, lastBatch };
  return { data, begin, end: last, lastBatch: batchOfRow(data, startOfLine(data, last - 1, begin)) };
}

/** Where the first row of this batch or a later one begins; the end of the rows if there is none. */
function firstFrom({ data, begin, end, lastBatch }: Rows, batch: number): number {
  if (lastBatch === undefined || lastBatch < batch) return end;
  let [low, high] = [begin, end];
  while (low < high) {
    const middle = (low + high) >> 1;
    const start = startOfLine(data, middle, low);
    if (batchOfRow(data, start)! >= batch) high = start;
    else low = data.indexOf(NEWLINE, middle) + 1;
  }
  return low;
}

/** Where the line with the byte `at` begins, which is not before `begin`. */
function startOfLine(data: Buffer, at: number, begin: number): number {
  return at <= begin ? begin : Math.max(begin, data.lastIndexOf(NEWLINE, at - 1) + 1);
}
