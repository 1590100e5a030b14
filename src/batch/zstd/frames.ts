/**
 * Unpacks a Zstandard stream (RFC 8878), for versions of Node without a decompressor. It reads block by block, each
 * only on demand. It holds one window, which grows with what was unpacked. Checksums are not verified.
 */

import { damaged } from "./bits.ts";
import { type BlockState, decodeBlock, firstState, type History, ZSTD_BLOCK_BYTES_MAX } from "./block.ts";
import { blockHead, type FrameHead, nextHead, ZstdInput } from "./heads.ts";
import { isSliceOver, nextSlice } from "./slices.ts";

const PIECE_BYTES = 256 * 1024;
/** What is unpacked at once goes out in pieces, each created on demand: a reader that does not read on holds three. */
const OUT_BYTES = 32 * 1024;

/**
 * The last bytes of a frame, up to its window: a ring of pieces, each allocated when it is first reached. One buffer
 * that grows would be copied, and copying a hundred megabytes at once would block the event loop.
 */
class Window implements History {
  private readonly pieces: Uint8Array[] = [];
  private readonly bytes: number;
  private total = 0;

  constructor(bytes: number) {
    this.bytes = bytes;
  }

  add(bytes: Uint8Array): void {
    const kept = bytes.subarray(Math.max(0, bytes.length - this.bytes));
    let place = (this.total + bytes.length - kept.length) % this.bytes;
    for (let done = 0; done < kept.length; ) {
      const part = kept.subarray(done, done + this.untilEnd(place));
      this.pieceAt(place).set(part, place % PIECE_BYTES);
      done += part.length;
      place = (place + part.length) % this.bytes;
    }
    this.total += bytes.length;
  }

  copy(into: Uint8Array, at: number, back: number, length: number): void {
    if (back > this.total || back > this.bytes) damaged("an offset is too large");
    let place = (this.total - back) % this.bytes;
    for (const end = at + length; at < end; ) {
      const count = Math.min(end - at, this.untilEnd(place));
      const piece = this.pieceAt(place);
      for (let from = place % PIECE_BYTES, stop = at + count; at < stop; ) into[at++] = piece[from++]!;
      place = (place + count) % this.bytes;
    }
  }

  /** A copy of what begins `back` bytes before the end. */
  copied(back: number, length: number): Buffer {
    const into = Buffer.allocUnsafeSlow(length);
    let place = (this.total - back) % this.bytes;
    for (let done = 0; done < length; ) {
      const count = Math.min(length - done, this.untilEnd(place));
      const from = place % PIECE_BYTES;
      into.set(this.pieceAt(place).subarray(from, from + count), done);
      done += count;
      place = (place + count) % this.bytes;
    }
    return into;
  }

  private pieceAt(place: number): Uint8Array {
    const index = Math.floor(place / PIECE_BYTES);
    this.pieces[index] ??= new Uint8Array(Math.min(PIECE_BYTES, this.bytes - index * PIECE_BYTES));
    return this.pieces[index];
  }

  /** Bytes from a place to the end of its piece. */
  private untilEnd(place: number): number {
    return Math.min(PIECE_BYTES - (place % PIECE_BYTES), this.bytes - place);
  }
}

/** Unpacks the chunks, in pieces of at most 32 KiB. `onHead` may refuse a frame, or make it wait. */
export async function* unpackZstd(
  chunks: AsyncIterable<Uint8Array>,
  onHead: (head: FrameHead) => void | Promise<void>,
): AsyncGenerator<Buffer> {
  const input = new ZstdInput(chunks);
  while (!(await input.isOver())) {
    // A frame may be empty, or skipped: a chunk has 32,768 of them.
    if (isSliceOver()) await nextSlice();
    const head = await nextHead(input);
    if ("skippedBytes" in head) await input.drop(head.skippedBytes);
    else yield* unpackFrame(input, head, onHead);
  }
}

async function* unpackFrame(
  input: ZstdInput,
  head: FrameHead,
  onHead: (head: FrameHead) => void | Promise<void>,
): AsyncGenerator<Buffer> {
  await onHead(head);
  const window = new Window(head.windowBytes);
  const state = firstState();
  const most = Math.min(head.windowBytes, ZSTD_BLOCK_BYTES_MAX);
  for (let isLast = false; !isLast; ) {
    if (isSliceOver()) await nextSlice();
    // Await only if necessary: there may be millions of blocks of three bytes each.
    const block = blockHead(input.now(3) ?? (await input.take(3)));
    const { type, size, count } = block;
    isLast = block.isLast;
    if (type === 3 || size > (type === 2 ? ZSTD_BLOCK_BYTES_MAX : most)) damaged("a block is too large");
    let unpacked = 0;
    {
      const content = input.now(count) ?? (await input.take(count));
      const bytes = unpackBlock(content, { type, size, most }, state, window);
      window.add(bytes);
      unpacked = bytes.length;
    }
    // From the window, which holds any block, so that nothing else of the block is held meanwhile.
    for (let left = unpacked; left > 0; left -= OUT_BYTES)
      yield window.copied(left, Math.min(left, OUT_BYTES));
  }
  if (head.hasChecksum) await input.take(4);
}

function unpackBlock(
  content: Uint8Array,
  { type, size, most }: { type: number; size: number; most: number },
  state: BlockState,
  window: Window,
): Uint8Array {
  if (type === 0) return content;
  if (type === 1) return new Uint8Array(size).fill(content[0]!);
  return decodeBlock(content, state, window, most);
}
