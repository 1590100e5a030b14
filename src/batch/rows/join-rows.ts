/** Copies rows of one batch from several places of the spool, so that they lie behind each other. */
import { OUTPUT_WINDOW_BYTES } from "../../contracts/limits/outputs.ts";
import type { RowsPlace } from "./rows-place.ts";
import type { Spool } from "./spool.ts";
import type { SpoolStream } from "./spool-stream.ts";

/** Twice this is what a stream takes before it has written some. */
const COPY_BYTES = OUTPUT_WINDOW_BYTES / 2;

/** Appends the rows of `pieces` to `stream`, in order. They are durable with the next sync of the spool. */
export async function joinRows(
  spool: Spool,
  stream: SpoolStream,
  pieces: readonly RowsPlace[],
): Promise<RowsPlace> {
  const size = { rows: 0, bytes: 0 };
  let unwritten = 0;
  for (const { file, offset, bytes, rows } of pieces) {
    for (let copied = 0; copied < bytes; ) {
      const length = Math.min(COPY_BYTES, bytes - copied);
      const buffer = Buffer.allocUnsafe(length);
      await spool.read(file, offset + copied, buffer, length);
      stream.append(buffer);
      copied += length;
      unwritten += length;
      if (unwritten < COPY_BYTES) continue;
      await stream.sync();
      unwritten = 0;
    }
    size.bytes += bytes;
    size.rows += rows;
  }
  return stream.take(size);
}
