/**
 * Reads a part from its store, a chunk at a time, unpacked if it is compressed. Somebody may have replaced it, so no more
 * of it is read and unpacked than what was written, and with no more memory.
 */
import { PART_WINDOW_BYTES } from "../../contracts/limits/outputs.ts";
import type { ObjectStore, OpenObject } from "../../object-store/object-store.ts";
import type { FrameHead } from "../zstd/heads.ts";
import { unpacked } from "../zstd/unpack.ts";
import type { Part } from "./part-rows.ts";
import { NotRows } from "./row-scanner.ts";

const READ_BYTES = 1024 * 1024;
/** Fewer of a compressed part: they become many more. */
const READ_PACKED_BYTES = 16 * 1024;

/** How a part is read. */
export interface Reading {
  /** The longest chunk, unless the part is compressed. */
  length?: number;
  /** Awaited after each read. Many reads may return in one turn of the event loop, and each chunk is work. */
  turn?: () => Promise<void>;
  /** Sees the bytes of the object as they come. */
  onStored?: (bytes: Buffer) => void;
}

/**
 * The chunks of the part, in order. Each is new memory. Throws ObjectMissing if it is not there, and NotRows if it has
 * more bytes than were written, or does not unpack to as many.
 */
export async function* chunksOf(
  store: ObjectStore,
  prefix: string,
  { name, bytes, unpacked_bytes }: Pick<Part, "name" | "bytes" | "unpacked_bytes">,
  reading: Reading = {},
): AsyncGenerator<Buffer> {
  const object = await store.open(`${prefix}${name}`);
  try {
    if (unpacked_bytes === null) yield* read(object, bytes, reading);
    else yield* unpack(object, { bytes, unpacked_bytes }, reading);
  } finally {
    await object.close();
  }
}

/** The bytes of the object, which must not be more than `most`. */
async function* read(
  object: OpenObject,
  most: number,
  { length = READ_BYTES, turn, onStored }: Reading,
): AsyncGenerator<Buffer> {
  for (let position = 0; ; ) {
    // One more byte tells that there are more.
    const wanted = Math.min(length, most + 1 - position);
    const buffer = Buffer.allocUnsafe(wanted);
    const bytes = await object.read(buffer, 0, position, wanted);
    if (bytes === 0) return;
    position += bytes;
    if (position > most) throw new NotRows(`it has more than the ${most} bytes that were written`);
    const chunk = buffer.subarray(0, bytes);
    await turn?.();
    onStored?.(chunk);
    yield chunk;
  }
}

async function* unpack(
  object: OpenObject,
  written: { bytes: number; unpacked_bytes: number },
  reading: Reading,
): AsyncGenerator<Buffer> {
  const source = new PackedSource(object, written.bytes, reading);
  let bytes = 0;
  try {
    for await (const chunk of unpacked(source.chunks(), admit)) {
      bytes += chunk.length;
      if (bytes > written.unpacked_bytes) break;
      await reading.turn?.();
      yield Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    }
  } catch (error) {
    throw source.failure ?? new NotRows(`it cannot be decompressed: ${(error as Error).message}`);
  }
  if (bytes === written.unpacked_bytes) return;
  const found = bytes > written.unpacked_bytes ? "more" : bytes;
  throw new NotRows(`it unpacks to ${found} bytes, and ${written.unpacked_bytes} were written`);
}

/** The bytes of a compressed part, as many as were written at most. */
class PackedSource {
  /** What ended the reading, if that was not the decompressor. */
  failure: unknown;
  private readonly object: OpenObject;
  private readonly most: number;
  private readonly reading: Reading;

  constructor(object: OpenObject, most: number, reading: Reading) {
    this.object = object;
    this.most = most;
    this.reading = { ...reading, length: READ_PACKED_BYTES };
  }

  async *chunks(): AsyncGenerator<Buffer> {
    try {
      yield* read(this.object, this.most, this.reading);
    } catch (error) {
      this.failure = error;
      throw error;
    }
  }
}

function admit({ windowBytes }: FrameHead): void {
  if (windowBytes > PART_WINDOW_BYTES)
    throw new Error(`a window of ${windowBytes} bytes is more than the ${PART_WINDOW_BYTES} that were used`);
}
