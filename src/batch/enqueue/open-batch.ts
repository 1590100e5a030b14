/** What the batch that is being filled has so far, and whether that is too much. Pure. */
import { BATCH_FILES_BYTES_MAX } from "../../contracts/limits/jobs.ts";
import { BATCH_BYTES_LIMIT, BATCH_LINES_BYTES_MAX } from "../../contracts/limits/submissions.ts";

export class OpenBatch {
  items = 0;
  /** Of its JSON array without white space, brackets and commas included. */
  compactBytes = 0;
  /** Of its lines in the input, with their white space. */
  private lineBytes = 0;
  /** Pieces of files that it has beside the one that is being read, and what they take in the row of its segment. */
  private files = 0;
  private filesBytes = 0;

  begin(): void {
    this.items = 0;
    this.compactBytes = 0;
    this.lineBytes = 0;
    this.files = 0;
    this.filesBytes = 0;
  }

  /** One item, whose line has `lineBytes` bytes, and without white space `compactBytes`. */
  item(compactBytes: number, lineBytes: number): void {
    // The opening bracket once, then a comma or the closing bracket after each item.
    if (this.items++ === 0) this.compactBytes = 1;
    this.compactBytes += compactBytes + 1;
    this.lineBytes += lineBytes;
  }

  /** A piece of a file that has ended, with lines of this batch. */
  file(rowBytes: number): void {
    this.files++;
    this.filesBytes += rowBytes;
  }

  /** What is too much, as the end of a sentence about the batch, with the cure; undefined if nothing is. */
  get excess(): { problem: string; cure: string } | undefined {
    if (this.compactBytes >= BATCH_BYTES_LIMIT)
      return {
        problem: `has ${this.compactBytes} bytes; a batch must be smaller than ${BATCH_BYTES_LIMIT}`,
        cure: "use a smaller batch_size, or smaller items",
      };
    if (this.lineBytes > BATCH_LINES_BYTES_MAX)
      return {
        problem: `has lines of ${this.lineBytes} bytes with their white space; at most ${BATCH_LINES_BYTES_MAX} are allowed`,
        cure: "remove the white space within the lines, or use a smaller batch_size",
      };
    if (this.filesBytes > BATCH_FILES_BYTES_MAX)
      return {
        problem: `has lines of more than ${this.files} files, too many to keep their names with one batch`,
        cure: "use a smaller batch_size, or fewer and larger files",
      };
    return undefined;
  }
}
