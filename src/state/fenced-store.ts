/**
 * A store in which only the server writes that has the database. Before each write it makes sure of that: a server that
 * was stopped, and wakes up after another one has taken over, would otherwise remove what the other one has written
 * (docs/decisions/0037-standby.md).
 */
import type {
  ListOptions,
  ObjectStore,
  Upload,
  WriteCondition,
  Written,
} from "../object-store/object-store.ts";

export class FencedStore implements ObjectStore {
  private readonly store: ObjectStore;
  private readonly confirmOwner: () => Promise<void>;
  readonly knowsConditions: ObjectStore["knowsConditions"];

  /** `confirmOwner` resolves once this server has the database for certain, and rejects if another one has it. */
  constructor(store: ObjectStore, confirmOwner: () => Promise<void>) {
    this.store = store;
    this.confirmOwner = confirmOwner;
    this.knowsConditions = store.knowsConditions?.bind(store);
  }

  parallelListings(prefix: string): number {
    return this.store.parallelListings(prefix);
  }

  list(prefix: string, options: ListOptions) {
    return this.store.list(prefix, options);
  }

  open(path: string, etag?: string) {
    return this.store.open(path, etag);
  }

  async put(path: string, body: Uint8Array, condition?: WriteCondition): Promise<Written> {
    await this.confirmOwner();
    return this.store.put(path, body, condition);
  }

  async create(path: string): Promise<Upload> {
    await this.confirmOwner();
    const upload = await this.store.create(path);
    return {
      write: (chunk) => upload.write(chunk),
      complete: async () => {
        await this.confirmOwner();
        return upload.complete();
      },
      abort: () => upload.abort(),
    };
  }

  async remove(path: string): Promise<void> {
    await this.confirmOwner();
    return this.store.remove(path);
  }

  async removeUnfinished(prefix: string, signal?: AbortSignal): Promise<void> {
    await this.confirmOwner();
    return this.store.removeUnfinished(prefix, signal);
  }
}
