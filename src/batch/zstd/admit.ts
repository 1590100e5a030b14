/**
 * Checks each Zstandard frame before Node's decompressor unpacks it. Node accepts one window limit per stream, but the
 * frames of a file may have different windows.
 */
import { type BlockHead, blockHead, type FrameHead, nextHead, ZstdInput } from "./heads.ts";
import { isSliceOver, nextSlice } from "./slices.ts";

/** Passed on at once: a file may have millions of blocks of three bytes each. */
const PIECE_BYTES = 64 * 1024;

/**
 * Passes the stream on unchanged. `onHead` sees each frame's head before any byte of the frame is passed on. It may
 * throw, or wait.
 */
export async function* admitFrames(
  chunks: AsyncIterable<Uint8Array>,
  onHead: (head: FrameHead) => void | Promise<void>,
): AsyncGenerator<Uint8Array> {
  const input = new ZstdInput(chunks, true);
  while (!(await input.isOver())) {
    // A frame may be empty, or skipped: a chunk has 32,768 of them.
    if (isSliceOver()) await nextSlice();
    // `onHead` may take long: pass on what is complete.
    yield input.takeKept();
    const head = await nextHead(input);
    if (!("skippedBytes" in head)) await onHead(head);
    for await (const count of "skippedBytes" in head ? piecesOf(head.skippedBytes) : blocks(input, head)) {
      if (isSliceOver()) await nextSlice();
      await input.take(count);
      if (input.keptBytes >= PIECE_BYTES) yield input.takeKept();
    }
  }
  yield input.takeKept();
}

function* piecesOf(bytes: number): Generator<number> {
  for (let left = bytes; left > 0; left -= PIECE_BYTES) yield Math.min(left, PIECE_BYTES);
}

async function* blocks(input: ZstdInput, frame: FrameHead): AsyncGenerator<number> {
  for (let block: BlockHead | undefined; block?.isLast !== true; yield block.count)
    block = blockHead(input.now(3) ?? (await input.take(3)));
  if (frame.hasChecksum) yield 4;
}
