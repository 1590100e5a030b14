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

const MAGIC = 0xfd2fb528;
const SKIPPABLE_MAGIC = 0x184d2a50;
const HEAD_BYTES_MAX = 18;
const FIRST_WINDOW_BYTES = 256 * 1024;
/** A block takes one or two. */
const TURN_MS = 5;

export interface FrameHead {
  windowBytes: number;
  hasChecksum: boolean;
}

/** The bytes of a stream, in the lengths that are asked for. */
class Input {
  private readonly chunks: AsyncIterator<Uint8Array> | Iterator<Uint8Array>;
  private chunk: Uint8Array = new Uint8Array(0);
  private at = 0;

  constructor(chunks: AsyncIterable<Uint8Array> | Uint8Array[]) {
    this.chunks = Array.isArray(chunks) ? chunks.values() : chunks[Symbol.asyncIterator]();
  }

  async isOver(): Promise<boolean> {
    while (this.at === this.chunk.length) {
      const { value, done } = await this.chunks.next();
      if (done === true) return true;
      this.chunk = value;
      this.at = 0;
    }
    return false;
  }

  /** The next bytes, where they are here already. */
  now(count: number): Uint8Array | undefined {
    if (this.chunk.length - this.at < count) return undefined;
    this.at += count;
    return this.chunk.subarray(this.at - count, this.at);
  }

  /** Throws where there are fewer. */
  async take(count: number): Promise<Uint8Array> {
    const here = this.now(count);
    if (here !== undefined) return here;
    const bytes = new Uint8Array(count);
    for (let has = 0; has < count; ) {
      if (await this.isOver()) damaged("unexpected end of file");
      const part = this.chunk.subarray(this.at, this.at + count - has);
      bytes.set(part, has);
      has += part.length;
      this.at += part.length;
    }
    return bytes;
  }

  async drop(count: number): Promise<void> {
    for (let left = count; left > 0; ) {
      if (await this.isOver()) damaged("unexpected end of file");
      const part = Math.min(left, this.chunk.length - this.at);
      this.at += part;
      left -= part;
    }
  }
}

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
  const input = new Input(chunks);
  while (!(await input.isOver())) {
    const magic = little(await input.take(4));
    if ((magic & 0xfffffff0) === SKIPPABLE_MAGIC) await input.drop(little(await input.take(4)));
    else if (magic >>> 0 === MAGIC) yield* unpackFrame(input, onHead);
    else damaged("it does not begin as Zstandard");
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

/** The head of the first frame, if it begins with one, and all of the stream. */
export async function peekHead(
  chunks: AsyncIterable<Uint8Array>,
): Promise<{ head: FrameHead | undefined; all: AsyncGenerator<Uint8Array> }> {
  const iterator = chunks[Symbol.asyncIterator]();
  const parts: Uint8Array[] = [];
  for (let bytes = 0; bytes < HEAD_BYTES_MAX; bytes += parts.at(-1)!.length) {
    const { value, done } = await iterator.next();
    if (done === true) break;
    parts.push(value);
  }
  const first = Buffer.concat(parts);
  async function* all() {
    yield first;
    yield* { [Symbol.asyncIterator]: () => iterator };
  }
  const isFrame = first.length > 4 && first.readUInt32LE() === MAGIC;
  const head = isFrame ? await readHead(new Input([first.subarray(4)])).catch(() => undefined) : undefined;
  return { head, all: all() };
}

async function* unpackFrame(
  input: Input,
  onHead: (head: FrameHead) => void | Promise<void>,
): AsyncGenerator<Buffer> {
  const head = await readHead(input);
  await onHead(head);
  const window = new Window(head.windowBytes);
  const state = firstState();
  const most = Math.min(head.windowBytes, ZSTD_BLOCK_BYTES_MAX);
  for (let isLast = false; !isLast; ) {
    if (performance.now() - turnBeganMs > TURN_MS) await letOthersRun();
    // Awaited only where it must be: blocks may be millions, of three bytes each.
    const block = little(input.now(3) ?? (await input.take(3)));
    isLast = (block & 1) === 1;
    const [type, size] = [(block >> 1) & 3, block >> 3];
    if (type === 3 || size > (type === 2 ? ZSTD_BLOCK_BYTES_MAX : most)) damaged("a block is too large");
    const count = type === 1 ? 1 : size;
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

async function readHead(input: Input): Promise<FrameHead> {
  const descriptor = (await input.take(1))[0]!;
  if ((descriptor & 8) !== 0) damaged("a frame has bits that are reserved");
  const isSingle = (descriptor & 32) !== 0;
  const windowByte = isSingle ? 0 : (await input.take(1))[0]!;
  const dictionary = await input.take([0, 1, 2, 4][descriptor & 3]!);
  if (dictionary.some((byte) => byte !== 0)) damaged("it needs a dictionary");
  const sizeFlag = descriptor >> 6;
  const size = await input.take(sizeFlag === 0 ? Number(isSingle) : 1 << sizeFlag);
  // Of eight bytes as well: what is not exact is far too large anyway.
  const contentBytes = size.reduceRight((sum, byte) => sum * 256 + byte, 0) + (sizeFlag === 1 ? 256 : 0);
  const base = 2 ** (10 + (windowByte >> 3));
  const windowBytes = isSingle ? contentBytes : base + (base / 8) * (windowByte & 7);
  return { windowBytes: Math.max(1, windowBytes), hasChecksum: (descriptor & 4) !== 0 };
}

function little(bytes: Uint8Array): number {
  return bytes.reduceRight((value, byte) => (value << 8) | byte, 0);
}
