/** Unpacks a Zstandard stream: by Node's decompressor if it has one, otherwise by ours. */
import { Readable, type Transform } from "node:stream";
import * as zlib from "node:zlib";
import { ZSTD_WINDOW_BYTES_MAX } from "../../contracts/limits/input-files.ts";
import { admitFrames } from "./admit.ts";
import { unpackZstd } from "./frames.ts";
import type { FrameHead } from "./heads.ts";

/** Node has it since 22.15. */
const { createZstdDecompress, constants } = zlib as unknown as {
  createZstdDecompress?: (options: { params: Record<number, number> }) => Transform;
  constants: { ZSTD_d_windowLogMax: number };
};

/**
 * The unpacked bytes, in pieces on demand. `onHead` sees the head of each frame before memory is allocated for its
 * window. It may refuse the frame, or make it wait.
 */
export function unpacked(
  chunks: AsyncIterable<Uint8Array>,
  onHead: (head: FrameHead) => void | Promise<void>,
): AsyncIterable<Uint8Array> {
  return createZstdDecompress === undefined
    ? unpackZstd(chunks, onHead)
    : unpackByNode(admitFrames(chunks, onHead));
}

async function* unpackByNode(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const params = { [constants.ZSTD_d_windowLogMax]: Math.log2(ZSTD_WINDOW_BYTES_MAX) };
  const inflate = createZstdDecompress!({ params });
  // By default it would read sixteen chunks ahead.
  const source = Readable.from(chunks, { highWaterMark: 1 });
  source.on("error", (error) => inflate.destroy(error));
  yield* source.pipe(inflate) as AsyncIterable<Uint8Array>;
}
