/**
 * Frames are admitted before another unpacks them: Node's own decompressor can be told only once how large a window may be, and a
 * file may have frames of many.
 */
import { type BlockHead, blockHead, type FrameHead, nextHead, ZstdInput } from "./zstd-heads.ts";

/** Blocks may be millions, of three bytes each. */
const PIECE_BYTES = 64 * 1024;

/** The stream as it is; no byte of a frame goes on before `onHead` has seen its head, and has refused it, or had it wait, or not. */
export async function* admitFrames(
  chunks: AsyncIterable<Uint8Array>,
  onHead: (head: FrameHead) => void | Promise<void>,
): AsyncGenerator<Uint8Array> {
  const input = new ZstdInput(chunks, true);
  while (!(await input.isOver())) {
    // `onHead` may take long.
    yield input.takeKept();
    const head = await nextHead(input);
    if (!("skippedBytes" in head)) await onHead(head);
    for await (const count of "skippedBytes" in head ? piecesOf(head.skippedBytes) : blocks(input, head)) {
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
