/** Reads a Zstandard stream (RFC 8878) in requested lengths, and the heads of its frames and blocks. */
import { damaged } from "./bits.ts";

const MAGIC = 0xfd2fb528;
const SKIPPABLE_MAGIC = 0x184d2a50;

export interface FrameHead {
  windowBytes: number;
  hasChecksum: boolean;
}

export interface BlockHead {
  isLast: boolean;
  /** 0 raw, 1 one byte repeated, 2 compressed. */
  type: number;
  /** Unpacked bytes; of a compressed block, packed bytes. */
  size: number;
  /** Bytes that follow. */
  count: number;
}

/** The bytes of a stream, in requested lengths. */
export class ZstdInput {
  private readonly chunks: AsyncIterator<Uint8Array>;
  private chunk: Uint8Array = new Uint8Array(0);
  private at = 0;
  /** The bytes that were taken, if they are kept. */
  private readonly kept: Uint8Array[] | undefined;
  keptBytes = 0;

  constructor(chunks: AsyncIterable<Uint8Array>, isKept = false) {
    this.chunks = chunks[Symbol.asyncIterator]();
    this.kept = isKept ? [] : undefined;
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

  /** The next bytes, if they have arrived. */
  now(count: number): Uint8Array | undefined {
    if (this.chunk.length - this.at < count) return undefined;
    return this.takeHere(count);
  }

  /** Throws if there are fewer. */
  async take(count: number): Promise<Uint8Array> {
    const here = this.now(count);
    if (here !== undefined) return here;
    const bytes = new Uint8Array(count);
    for (let has = 0; has < count; ) {
      if (await this.isOver()) damaged("unexpected end of file");
      const part = this.takeHere(Math.min(count - has, this.chunk.length - this.at));
      bytes.set(part, has);
      has += part.length;
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

  /** The bytes taken since the last call. */
  takeKept(): Buffer {
    this.keptBytes = 0;
    return Buffer.concat(this.kept?.splice(0) ?? []);
  }

  private takeHere(count: number): Uint8Array {
    const bytes = this.chunk.subarray(this.at, this.at + count);
    this.at += count;
    this.keptBytes += count;
    this.kept?.push(bytes);
    return bytes;
  }
}

/** Reads what comes next: the head of a frame, or the number of bytes to skip. */
export async function nextHead(input: ZstdInput): Promise<FrameHead | { skippedBytes: number }> {
  const magic = little(await input.take(4));
  if ((magic & 0xfffffff0) === SKIPPABLE_MAGIC) return { skippedBytes: little(await input.take(4)) >>> 0 };
  return magic >>> 0 === MAGIC ? readHead(input) : damaged("it does not begin like Zstandard");
}

export function blockHead(bytes: Uint8Array): BlockHead {
  const head = little(bytes);
  const [type, size] = [(head >> 1) & 3, head >> 3];
  return { isLast: (head & 1) === 1, type, size, count: type === 1 ? 1 : size };
}

async function readHead(input: ZstdInput): Promise<FrameHead> {
  const descriptor = (await input.take(1))[0]!;
  if ((descriptor & 8) !== 0) damaged("a frame has bits that are reserved");
  const isSingle = (descriptor & 32) !== 0;
  const windowByte = isSingle ? 0 : (await input.take(1))[0]!;
  const dictionary = await input.take([0, 1, 2, 4][descriptor & 3]!);
  if (dictionary.some((byte) => byte !== 0)) damaged("it needs a dictionary");
  const sizeFlag = descriptor >> 6;
  const size = await input.take(sizeFlag === 0 ? Number(isSingle) : 1 << sizeFlag);
  // Also for eight bytes: a sum that is not exact is far too large anyway.
  const contentBytes = size.reduceRight((sum, byte) => sum * 256 + byte, 0) + (sizeFlag === 1 ? 256 : 0);
  const base = 2 ** (10 + (windowByte >> 3));
  const windowBytes = isSingle ? contentBytes : base + (base / 8) * (windowByte & 7);
  return { windowBytes: Math.max(1, windowBytes), hasChecksum: (descriptor & 4) !== 0 };
}

function little(bytes: Uint8Array): number {
  return bytes.reduceRight((value, byte) => (value << 8) | byte, 0);
}
