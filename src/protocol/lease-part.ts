/** LEASE_PART: some items of a batch that has failed, to be tried by themselves (docs/decisions/0027-isolation.md). */

/** `u32 batch index | u32 first item`, before the JSON array of the items. */
export const LEASE_PART_HEADER_BYTES = 8;

/** The body. The frame's id is the delivery. */
export function encodeLeasePart(batchIndex: number, firstItem: number, items: Buffer): Buffer {
  const body = Buffer.allocUnsafe(LEASE_PART_HEADER_BYTES + items.length);
  body.writeUInt32LE(batchIndex, 0);
  body.writeUInt32LE(firstItem, 4);
  items.copy(body, LEASE_PART_HEADER_BYTES);
  return body;
}
