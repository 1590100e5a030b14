/** Which batches of a lease share a frame. Pure: batch-worker.ts sends the frames. */

const LEASE_FRAME_BYTES = 64 * 1024;

/** The lease entries of adjacent batches, in memory (dispatch/segment-reader.ts). */
export interface LeaseEntries {
  /** The message that they are sent in, if it is not a LEASE. */
  readonly message?: number;
  entryBytes(batchIndex: number): number;
  /** The entries of `count` batches from `first` on, without a copy. */
  entries(first: number, count: number): Buffer;
}

export interface LeasedBatch {
  index: number;
  segment: LeaseEntries;
}

/** Counts the batches from `from` on that are adjacent in memory and fit into one frame; at least one. */
export function runLength(batches: readonly LeasedBatch[], from: number): number {
  const { index, segment } = batches[from]!;
  let bytes = segment.entryBytes(index);
  let count = 1;
  for (; from + count < batches.length; count++) {
    const next = batches[from + count]!;
    if (next.segment !== segment || next.index !== index + count) break;
    bytes += segment.entryBytes(next.index);
    if (bytes > LEASE_FRAME_BYTES) break;
  }
  return count;
}
