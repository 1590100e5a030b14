/** The parts of a body as they come, where a sender may make them as small as it likes. */

/** Beside its bytes each part costs some three hundred, which no budget counts. */
const SMALL_PART_BYTES = 4096;

/**
 * Keeps one more part. A small one behind a small one is copied to it, into a block that grows; all others stay where they are.
 * Takes and returns the block that the last part is in, where that is one of ours.
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

/** Beginning with `last`, and with room for as much again. */
function blockOf(last: Uint8Array, bytes: number): Buffer {
  // Not from the pool: the whole of that would be kept for it.
  const block = Buffer.allocUnsafeSlow(Math.min(bytes * 2, SMALL_PART_BYTES * 2));
  block.set(last);
  return block;
}
