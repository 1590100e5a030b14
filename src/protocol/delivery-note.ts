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
  /** Whether predict() was still running. */
  busy: boolean;
}

/** Undefined if there is no note, or if the process died before it made one. */
export function readDeliveryNote(path: string): DeliveryNote | undefined {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch {
    return undefined;
  }
  if (bytes.length < 21 || bytes.readUInt32LE(0) !== MAGIC) return undefined;
  return {
    epoch: bytes.readUInt32LE(4),
    connection: bytes.readUInt32LE(8),
    delivery: bytes.readUInt32LE(12),
    batch_index: bytes.readUInt32LE(16),
    busy: bytes[20] !== 0,
  };
}
