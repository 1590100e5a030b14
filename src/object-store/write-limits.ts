/** How much a write may have, how long it may take, and the digests with which stores check what arrived. */
import { createHash, type Hash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  STORE_PUT_BYTES_MAX,
  STORE_SILENCE_MS,
  STORE_SLOWEST_BYTES_PER_S,
} from "../contracts/limits/stores.ts";

/** Bytes that are hashed in one turn of the event loop: 2 ms of MD5. */
const HASHED_AT_ONCE = 1024 * 1024;

export function assertSmall(path: string, body: Uint8Array): void {
  if (body.length > STORE_PUT_BYTES_MAX)
    throw new Error(`${path} has ${body.length} bytes; put() writes at most ${STORE_PUT_BYTES_MAX}`);
}

/** How long a request with so many bytes may take until its response begins. */
export function millisToSend(bytes: number): number {
  return STORE_SILENCE_MS + Math.ceil((bytes / STORE_SLOWEST_BYTES_PER_S) * 1000);
}

export async function updateHash(hash: Hash, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; at += HASHED_AT_ONCE) {
    if (at > 0) await nextTurn();
    hash.update(bytes.subarray(at, at + HASHED_AT_ONCE));
  }
}

export async function md5Of(bytes: Uint8Array): Promise<Buffer> {
  const hash = createHash("md5");
  await updateHash(hash, bytes);
  return hash.digest();
}
