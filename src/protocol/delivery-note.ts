/**
 * Reads a worker's note of the delivery in hand (python/quern_runtime/note.py has the layout). After a death the note
 * shows which batch or request was running, and that all later ones never started.
 */
import { readFileSync } from "node:fs";

const MAGIC = 0x314e5451;
/** Bytes of the file. */
export const NOTE_BYTES = 32;

export interface DeliveryNote {
  epoch: number;
  /** The worker's number for the connection through which the delivery came. */
  connection: number;
  /** The last delivery or request that was started. */
  delivery: number;
  batch_index: number;
  /** Whether predict() was still running, or making a piece of a stream. */
  busy: boolean;
  /** When it was last called, in nanoseconds of the system's monotonic clock (`process.hrtime.bigint()`). */
  since: bigint;
}

/** Undefined if there is no note, or if the process died before it made one. */
export function readDeliveryNote(path: string): DeliveryNote | undefined {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch {
    return undefined;
  }
  if (bytes.length < NOTE_BYTES || bytes.readUInt32LE(0) !== MAGIC) return undefined;
  return {
    epoch: bytes.readUInt32LE(4),
    connection: bytes.readUInt32LE(8),
    delivery: bytes.readUInt32LE(12),
    batch_index: bytes.readUInt32LE(16),
    busy: bytes[20] !== 0,
    since: bytes.readBigUInt64LE(24),
  };
}

/**
 * How long the call of user code that is running has run, in milliseconds: 0 if none is. Without a note, nothing is
 * known, and it counts as having run forever.
 */
export function runsForMs(note: DeliveryNote | undefined, now = process.hrtime.bigint()): number {
  if (note === undefined) return Number.POSITIVE_INFINITY;
  return note.busy ? Number(now - note.since) / 1e6 : 0;
}
