/**
 * Reads the whole body of a store's response: a page of a listing, or an error. A proxy or any other server may have
 * sent it, so it is limited in bytes and in time.
 */
import type { Readable } from "node:stream";
import { STORE_PAGE_BYTES_MAX, STORE_SILENCE_MS } from "../contracts/limits/stores.ts";
import { LISTING_SLICES } from "./listing-slices.ts";

/** The caller then parses the page in the same slice. */
export async function pageOfStore(body: Readable): Promise<string> {
  const bytes = await bytesOfStore(body, STORE_PAGE_BYTES_MAX);
  if (LISTING_SLICES.isOver) await LISTING_SLICES.rest();
  return bytes.toString();
}

export async function textOfStore(body: Readable, bytesMax: number): Promise<string> {
  return (await bytesOfStore(body, bytesMax)).toString();
}

async function bytesOfStore(body: Readable, bytesMax: number): Promise<Buffer> {
  const silence = new Error(`the store sent nothing for ${STORE_SILENCE_MS / 1000} s`);
  const timer = setTimeout(() => body.destroy(silence), STORE_SILENCE_MS);
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    // Leaving the loop destroys the body.
    for await (const piece of body as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > bytesMax) throw new Error(`its response is longer than ${bytesMax} bytes`);
      pieces.push(piece);
    }
  } finally {
    clearTimeout(timer);
  }
  return Buffer.concat(pieces);
}
