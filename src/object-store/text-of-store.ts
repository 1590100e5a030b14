/**
 * Reads the whole body of a store's response: a page of a listing, or an error. A proxy or any other server may have
 * sent it, so it is limited in bytes and in time.
 */
import type { Readable } from "node:stream";
import { STORE_SILENCE_MS } from "../contracts/limits/stores.ts";

export async function textOfStore(body: Readable, bytesMax: number): Promise<string> {
  const reading = new StoreBody(body);
  if (await reading.readTo(bytesMax)) return reading.take().toString();
  throw reading.tooLong(bytesMax);
}

/** A body that is read in one or more steps. */
export class StoreBody {
  private readonly body: Readable;
  private readonly coming: AsyncIterator<Buffer>;
  private pieces: Buffer[] = [];
  private bytes = 0;

  constructor(body: Readable) {
    this.body = body;
    this.coming = body[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  /** Reads until the body has ended, or has more bytes; says whether it has ended. */
  async readTo(bytesMax: number): Promise<boolean> {
    const silence = new Error(`the store sent nothing for ${STORE_SILENCE_MS / 1000} s`);
    const timer = setTimeout(() => this.body.destroy(silence), STORE_SILENCE_MS);
    try {
      while (this.bytes <= bytesMax) {
        const { value, done } = await this.coming.next();
        if (done) return true;
        this.bytes += value.length;
        this.pieces.push(value);
      }
      return false;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Drops the rest of the body, and returns the error. */
  tooLong(bytesMax: number): Error {
    this.body.destroy();
    return new Error(`its response is longer than ${bytesMax} bytes`);
  }

  /** What was read; it is not kept. */
  take(): Buffer {
    const bytes = Buffer.concat(this.pieces);
    this.pieces = [];
    return bytes;
  }
}
