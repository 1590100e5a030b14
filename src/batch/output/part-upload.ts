/** One part on its way into the store: counts and hashes what is stored. */
import { createHash } from "node:crypto";
import { type ObjectStore, type Upload, UploadLost } from "../../object-store/object-store.ts";
import type { Part } from "./part-rows.ts";

/** What was filled in, and what a reader can check it by. */
type Filled<T> = T & Pick<Part, "bytes" | "sha256">;

const TRIES = 3;

export class PartUpload {
  private readonly upload: Upload;
  private readonly hash = createHash("sha256");
  private bytes = 0;

  private constructor(upload: Upload) {
    this.upload = upload;
  }

  /**
   * Writes an object with what `fill` gives. It is durable then; after an error there is none. `fill` is called again,
   * a few times, if the store loses the upload.
   */
  static async write<T extends object>(
    store: ObjectStore,
    path: string,
    fill: (part: PartUpload) => Promise<T>,
  ): Promise<Filled<T>> {
    for (let tries = 1; ; tries++)
      try {
        return await PartUpload.tryToWrite(store, path, fill);
      } catch (error) {
        if (!(error instanceof UploadLost) || tries === TRIES) throw error;
      }
  }

  private static async tryToWrite<T extends object>(
    store: ObjectStore,
    path: string,
    fill: (part: PartUpload) => Promise<T>,
  ): Promise<Filled<T>> {
    const part = new PartUpload(await store.create(path));
    try {
      const content = await fill(part);
      await part.upload.complete();
      return { ...content, bytes: part.bytes, sha256: part.hash.digest("hex") };
    } catch (error) {
      await part.upload.abort().catch(() => {});
      throw error;
    }
  }

  /** `piece` may change once this has resolved. */
  async append(piece: Buffer): Promise<void> {
    this.hash.update(piece);
    this.bytes += piece.length;
    await this.upload.write(piece);
  }
}
