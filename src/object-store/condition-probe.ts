/**
 * Finds out by trying whether a store honours the conditions of writes. Some stores with the protocol of S3 ignore them
 * and overwrite. Output on such a store could be written twice, so callers refuse it.
 */
import { ServiceError } from "../contracts/errors.ts";
import { STORE_PROBES_KEPT } from "../contracts/limits/stores.ts";
import { ConditionFailed, ObjectMissing, type ObjectStore, type WriteCondition } from "./object-store.ts";
import { newProbeName } from "./own-names.ts";

function contradiction(path: string, cause: Error): ServiceError {
  const message = `the store refuses to write ${path}, because it exists, and then says that it does not: check the store's rules for writes with If-None-Match, or write to another one`;
  return new ServiceError("store_unreachable", message, { cause });
}

export class ConditionProbe {
  private readonly store: ObjectStore;
  /** Buckets whose conditions hold. */
  private readonly honoured = new Set<string>();

  constructor(store: ObjectStore) {
    this.store = store;
  }

  /**
   * A store that knows the answer is asked, and nothing is left there. In others, this writes an object whose address
   * begins with `prefix`, and removes it. False if the store ignores conditions. Throws the store's error if it may not
   * be written or removed there. A bucket that honours conditions is not asked about them again; whether the prefix may
   * be written is tried each time.
   */
  async hasConditions(prefix: string): Promise<boolean> {
    if (await this.store.knowsConditions?.(prefix)) return true;
    const path = `${prefix}${newProbeName()}`;
    const bucket = /^[^:]+:\/\/[^/]*/.exec(prefix)![0];
    let holds: boolean;
    try {
      const first = await this.first(path);
      holds = this.honoured.has(bucket) || (await this.holds(path, first));
    } catch (error) {
      await this.store.remove(path).catch(() => {});
      throw error;
    }
    await this.store.remove(path);
    if (holds) this.remember(bucket);
    return holds;
  }

  /** The etag of the object, which is new: if it exists, a repeated request has met its own object. */
  private async first(path: string): Promise<string> {
    try {
      return (await this.store.put(path, Buffer.from("1"), "absent")).etag;
    } catch (error) {
      if (!(error instanceof ConditionFailed)) throw error;
      const object = await this.store.open(path).catch((missing: unknown) => {
        throw missing instanceof ObjectMissing ? contradiction(path, missing) : missing;
      });
      await object.close();
      return object.etag;
    }
  }

  private async holds(path: string, first: string): Promise<boolean> {
    if (await this.isWritten(path, "2", "absent")) return false;
    await this.isWritten(path, "3", { etag: first });
    return !(await this.isWritten(path, "4", { etag: first }));
  }

  private async isWritten(path: string, content: string, condition: WriteCondition): Promise<boolean> {
    try {
      await this.store.put(path, Buffer.from(content), condition);
      return true;
    } catch (error) {
      if (error instanceof ConditionFailed) return false;
      throw error;
    }
  }

  private remember(bucket: string): void {
    if (this.honoured.size >= STORE_PROBES_KEPT) this.honoured.clear();
    this.honoured.add(bucket);
  }
}
