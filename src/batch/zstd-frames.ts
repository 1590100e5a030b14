/**
 * Zstandard (RFC 8878) as a stream, for a Node that has no decompressor of its own: block by block, so that the next one is read
 * only when somebody wants it. It holds one window, which grows with what was unpacked, and never more than is allowed. Checksums
 * are not verified.
 */

import { setImmediate as nextTurn } from "node:timers/promises";
import { damaged } from "./zstd-bits.ts";
import {
  type BlockState,
  decodeBlock,
  firstState,
  type History,
  ZSTD_BLOCK_BYTES_MAX,
} from "./zstd-block.ts";

import { blockHead, type FrameHead, nextHead, ZstdInput } from "./zstd-heads.ts";

const FIRST_WINDOW_BYTES = 256 * 1024;
/** A block takes one or two. */
const TURN_MS = 5;

/** The last bytes of a frame, up to its window. */
class Window implements History {
  private ring: Uint8Array;
  private readonly most: number;
  private total = 0;

  constructor(most: number) {
    this.most = most;
    this.ring = new Uint8Array(Math.min(most, FIRST_WINDOW_BYTES));
  }

  add(bytes: Uint8Array): void {
    while (this.total + bytes.length > this.ring.length && this.ring.length < this.most) {
      const larger = new Uint8Array(Math.min(this.most, 2 * this.ring.length));
      larger.set(this.ring);
      this.ring = larger;
    }
    const kept = bytes.subarray(Math.max(0, bytes.length - this.ring.length));
    const at = (this.total + bytes.length - kept.length) % this.ring.length;
    const before = kept.subarray(0, this.ring.length - at);
    this.ring.set(before, at);
    this.ring.set(kept.subarray(before.length), 0);
    this.total += bytes.length;
  }

  copy(into: Uint8Array, at: number, back: number, length: number): void {
    if (back > this.total || back > this.ring.length) damaged("an offset is too large");
    let from = (this.total - back) % this.ring.length;
    for (const end = at + length; at < end; ) {
      into[at++] = this.ring[from++]!;
      if (from === this.ring.length) from = 0;
    }
  }
}

/** What the chunks unpack to, in pieces of at most 128 KiB. `onHead` may refuse a frame, or have it wait. */
export async function* unpackZstd(
  chunks: AsyncIterable<Uint8Array>,
  onHead: (head: FrameHead) => void | Promise<void>,
): AsyncGenerator<Buffer> {
  const input = new ZstdInput(chunks);
  while (!(await input.isOver())) {
    const head = await nextHead(input);
    if ("skippedBytes" in head) await input.drop(head.skippedBytes);
    else yield* unpackFrame(input, head, onHead);
  }
}

/** Of all streams together: one of them runs in each turn of the event loop. */
let turns: Promise<void> = Promise.resolve();
let turnBeganMs = 0;

async function letOthersRun(): Promise<void> {
  turns = turns.then(() => nextTurn());
  await turns;
  turnBeganMs = performance.now();
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
    if (performance.now() - turnBeganMs > TURN_MS) await letOthersRun();
    // Awaited only where it must be: blocks may be millions, of three bytes each.
    const block = blockHead(input.now(3) ?? (await input.take(3)));
    const { type, size, count } = block;
    isLast = block.isLast;
    if (type === 3 || size > (type === 2 ? ZSTD_BLOCK_BYTES_MAX : most)) damaged("a block is too large");
    const content = input.now(count) ?? (await input.take(count));
    const bytes = unpackBlock(content, { type, size, most }, state, window);
    window.add(bytes);
    if (bytes.length > 0) yield Buffer.from(bytes);
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
