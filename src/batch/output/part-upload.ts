/** One part on its way into the store: compresses it if the output is compressed, counts and hashes what is stored. */
import { createHash } from "node:crypto";
import { type ObjectStore, type Upload, UploadLost } from "../../object-store/object-store.ts";
import { ZstdWriter } from "../zstd/writer.ts";
import type { OutputCompression } from "./job-outputs.ts";
import type { Part } from "./part-rows.ts";

/** Where an output is, and how its parts are stored. */
export interface PartPlace {
  store: ObjectStore;
  prefix: string;
  compression: OutputCompression;
}

/** What was filled in, and what a reader can check it by. */
type Filled<T> = T & Pick<Part, "bytes" | "sha256" | "unpacked_bytes">;

const TRIES = 3;

export class PartUpload {
  private readonly upload: Upload;
  private readonly zstd: ZstdWriter | undefined;
  private readonly hash = createHash("sha256");
  private bytes = 0;

  private constructor(compression: OutputCompression, upload: Upload) {
    this.zstd = compression === "zstd" ? new ZstdWriter((packed) => this.store(packed)) : undefined;
    this.upload = upload;
  }

  /**
   * Writes the object `name` with what `fill` gives. It is durable then; after an error there is none. `fill` is called
   * again, a few times, if the store loses the upload.
   */
  static async write<T extends object>(
    place: PartPlace,
    name: string,
    fill: (part: PartUpload) => Promise<T>,
  ): Promise<Filled<T>> {
    for (let tries = 1; ; tries++)
      try {
        return await PartUpload.tryToWrite(place, name, fill);
      } catch (error) {
        if (!(error instanceof UploadLost) || tries === TRIES) throw error;
      }
  }

  private static async tryToWrite<T extends object>(
    { store, prefix, compression }: PartPlace,
    name: string,
    fill: (part: PartUpload) => Promise<T>,
  ): Promise<Filled<T>> {
    const upload = await store.create(`${prefix}${name}`);
    let part: PartUpload | undefined;
    try {
      part = new PartUpload(compression, upload);
      const content = await fill(part);
      return { ...content, ...(await part.complete()) };
    } catch (error) {
      await upload.abort().catch(() => {});
      throw error;
    } finally {
      part?.zstd?.close();
    }
  }

  /** `piece` may change once this has resolved. */
  append(piece: Buffer): Promise<void> {
    return this.zstd === undefined ? this.store(piece) : this.zstd.append(piece);
  }

  private async complete(): Promise<Filled<object>> {
    await this.zstd?.end();
    await this.upload.complete();
    const unpacked_bytes = this.zstd?.unpackedBytes ?? null;
    return { bytes: this.bytes, sha256: this.hash.digest("hex"), unpacked_bytes };
  }

  private async store(piece: Uint8Array): Promise<void> {
    this.hash.update(piece);
    this.bytes += piece.length;
    await this.upload.write(piece);
  }
}
