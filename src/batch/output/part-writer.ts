/**
 * Writes one part of a job's output: the rows of its batches, in order, from the spool into an object of the store. In
 * memory are a page of the index and one read.
 */
import type { RowsIndex } from "../rows/rows-by-batch.ts";
import type { RowsPlace } from "../rows/rows-place.ts";
import { adjacentRuns } from "../rows/rows-runs.ts";
import type { Spool } from "../rows/spool.ts";
import type { Part } from "./part-rows.ts";
import type { PartRange } from "./part-sizes.ts";
import { type PartPlace, PartUpload } from "./part-upload.ts";

const ENTRIES_A_PAGE = 4096;
const READ_BYTES = 1024 * 1024;

export interface PartSources extends PartPlace {
  spool: Spool;
  index: RowsIndex;
}

/** What a part has, as it is written. */
type PartContent = Pick<Part, "batches" | "rows" | "bytes" | "sha256" | "unpacked_bytes">;

/** Writes the rows of the range to the object `name`. It is durable then. */
export function writePart(
  sources: PartSources,
  { first, next }: PartRange,
  name: string,
): Promise<PartContent> {
  const { spool, index } = sources;
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  return PartUpload.write(sources, name, async (part) => {
    const content = { batches: 0, rows: 0 };
    for (let from = first; from < next; from += ENTRIES_A_PAGE) {
      const places = await index.read(from, Math.min(ENTRIES_A_PAGE, next - from));
      for (const run of adjacentRuns(places, from)) {
        await copyRows(spool, run, buffer, part);
        content.rows += run.rows;
        content.batches += run.batches;
      }
    }
    return content;
  });
}

/** Copies rows from the spool, a buffer at a time. */
export async function copyRows(
  spool: Spool,
  { file, offset, bytes }: RowsPlace,
  buffer: Buffer,
  part: PartUpload,
): Promise<void> {
  for (let copied = 0; copied < bytes; ) {
    const length = Math.min(buffer.length, bytes - copied);
    await spool.read(file, offset + copied, buffer, length);
    await part.append(buffer.subarray(0, length));
    copied += length;
  }
}
