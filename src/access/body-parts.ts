/** Stores the parts of a body as they come, although a sender may make them as small as it likes. */

/** Besides its bytes each part costs about 300 bytes, which no budget counts. */
export const SMALL_PART_BYTES = 4096;

/**
 * Adds a part. A small part after a small one is copied into the same block, which grows; all others are kept as they
 * are. Takes and returns the block with the last part, or undefined if that part has none.
 */
export function keepPart(
  parts: Uint8Array[],
  part: Uint8Array,
  block: Buffer | undefined,
): Buffer | undefined {
  const last = parts.at(-1);
  if (last === undefined || last.length >= SMALL_PART_BYTES || part.length >= SMALL_PART_BYTES) {
    parts.push(part);
    return undefined;
  }
  const bytes = last.length + part.length;
  const grown = block !== undefined && block.length >= bytes ? block : blockOf(last, bytes);
  grown.set(part, last.length);
  parts[parts.length - 1] = grown.subarray(0, bytes);
  return grown;
}

/** A block that begins with `last`, with space for as much again. */
function blockOf(last: Uint8Array, bytes: number): Buffer {
  // Not from Node's buffer pool: the whole pool block would stay in memory.
  const block = Buffer.allocUnsafeSlow(Math.min(bytes * 2, SMALL_PART_BYTES * 2));
  block.set(last);
  return block;
}
