/**
 * Unpacks a `.gz` file: members one after the other, also with zeros after them (RFC 1952, and as Python's gzip does).
 * Node's decompressor takes all members up to such zeros for one stream, and ignores what follows. So this class goes on
 * from there: to the end of the file, or with another decompressor from the next byte that is not a zero.
 */
import { once } from "node:events";
import { Readable } from "node:stream";
import { createGunzip, type Gunzip } from "node:zlib";

interface Run {
  source: Readable;
  inflate: Gunzip;
}

export class GzipRuns {
  private readonly chunks: () => AsyncGenerator<Buffer>;
  private readonly readPadding: () => Promise<Buffer | undefined>;
  /** What was read, and may not be unpacked yet: the chunks that a run holds anyway. */
  private kept: Buffer[] = [];
  /** Where `kept` begins, in the bytes of the run. */
  private keptFrom = 0;
  private run: Run | undefined;

  /** Both read on where the other has ended: chunks that unpack to something, and those that begin with padding. */
  constructor(chunks: () => AsyncGenerator<Buffer>, readPadding: () => Promise<Buffer | undefined>) {
    this.chunks = chunks;
    this.readPadding = readPadding;
  }

  begin(): AsyncIterator<Uint8Array> {
    const inflate = createGunzip();
    this.keptFrom = 0;
    const source = Readable.from(this.keeping(inflate));
    source.on("error", (error) => inflate.destroy(error));
    this.run = { source, inflate };
    return source.pipe(inflate)[Symbol.asyncIterator]();
  }

  /** Call this after the end of a run. Returns the next one; undefined at the end of the file. */
  async next(): Promise<AsyncIterator<Uint8Array> | undefined> {
    const { source, inflate } = this.run!;
    // A read in progress ends first, and its chunk is kept.
    if (!source.closed) await once(source.destroy(), "close");
    this.dropUnpacked(inflate);
    const unpacked = inflate.bytesWritten - this.keptFrom;
    if (this.kept.length > 0) this.kept[0] = this.kept[0]!.subarray(unpacked);
    return (await this.skipZeros()) ? this.begin() : undefined;
  }

  private async *keeping(inflate: Gunzip): AsyncGenerator<Buffer> {
    yield* [...this.kept];
    for await (const chunk of this.chunks()) {
      this.dropUnpacked(inflate);
      this.kept.push(chunk);
      yield chunk;
    }
  }

  private dropUnpacked({ bytesWritten }: Gunzip): void {
    while (this.kept.length > 0 && this.keptFrom + this.kept[0]!.length <= bytesWritten)
      this.keptFrom += this.kept.shift()!.length;
  }

  /** Returns whether there is another byte. */
  private async skipZeros(): Promise<boolean> {
    for (;;) {
      const chunk = this.kept.shift() ?? (await this.readPadding());
      if (chunk === undefined) return false;
      const at = chunk.findIndex((byte) => byte !== 0);
      if (at < 0) continue;
      this.kept.unshift(chunk.subarray(at));
      return true;
    }
  }
}
