/**
 * Reads the pages of one store's listings. All pages that are being read share the event loop. Few large ones are read
 * at once: a server that sends pages of megabytes, or stops in the middle of them, keeps only its own waiting.
 */
import type { Readable } from "node:stream";
import { STORE_LARGE_PAGES_MAX, STORE_SMALL_PAGE_BYTES } from "../../contracts/limits/stores.ts";
import { AtMost } from "../at-most.ts";
import { StoreBody } from "../text-of-store.ts";
import { LISTING_SLICES } from "./listing-slices.ts";

export class StorePages {
  private readonly bytesMax: number;
  private readonly large = new AtMost(STORE_LARGE_PAGES_MAX);

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  /** `parse` is called in a slice of LISTING_SLICES. */
  async read<T>(body: Readable, parse: (text: string) => Promise<T>): Promise<T> {
    const reading = new StoreBody(body);
    if (await reading.readTo(STORE_SMALL_PAGE_BYTES)) return parsed(reading, parse);
    return this.large.run(async () => {
      if (!(await reading.readTo(this.bytesMax))) throw reading.tooLong(this.bytesMax);
      return parsed(reading, parse);
    });
  }
}

async function parsed<T>(reading: StoreBody, parse: (text: string) => Promise<T>): Promise<T> {
  if (LISTING_SLICES.isOver) await LISTING_SLICES.rest();
  const text = reading.take().toString();
  if (LISTING_SLICES.isOver) await LISTING_SLICES.rest();
  return parse(text);
}
