/**
 * `quern://`: the server's own place, which nobody reads input from. With `--state` it is a prefix of an object store;
 * without, only `quern://outputs/` exists, a directory of the server for outputs without a bucket
 * (docs/contract/output.md#in-the-server).
 */
import type { ListedObject, ListOptions, ObjectStore, WriteCondition } from "../object-store.ts";

/** What the addresses of everything in the server begin with. */
export const OWN_PREFIX = "quern://";
/** What the addresses of outputs in the server begin with. */
export const SERVER_PREFIX = `${OWN_PREFIX}outputs/`;

export class ServerStore implements ObjectStore {
  private readonly store: ObjectStore;
  private readonly prefix: string;
  private readonly root: string;
  private readonly isChecked: boolean;

  /**
   * Addresses that begin with `prefix` are below `root` of the store; both end with a slash. `isChecked`: the start of
   * the server has found out that writes there can have conditions.
   */
  constructor(store: ObjectStore, prefix: string, root: string, isChecked = false) {
    this.store = store;
    this.isChecked = isChecked;
    this.prefix = prefix;
    this.root = root;
  }

  parallelListings(prefix: string): number {
    return this.store.parallelListings(this.address(prefix));
  }

  async *list(prefix: string, options: ListOptions): AsyncGenerator<ListedObject[]> {
    const after = options.after === undefined ? undefined : this.address(options.after);
    for await (const page of this.store.list(this.address(prefix), { ...options, after }))
      yield page.map(({ path, bytes }) => ({ path: this.prefix + path.slice(this.root.length), bytes }));
  }

  open(path: string, etag?: string) {
    return this.store.open(this.address(path), etag);
  }

  put(path: string, body: Uint8Array, condition?: WriteCondition) {
    return this.store.put(this.address(path), body, condition);
  }

  create(path: string) {
    return this.store.create(this.address(path));
  }

  remove(path: string) {
    return this.store.remove(this.address(path));
  }

  async knowsConditions(prefix: string) {
    return this.isChecked || ((await this.store.knowsConditions?.(this.address(prefix))) ?? false);
  }

  removeUnfinished(prefix: string, signal?: AbortSignal) {
    return this.store.removeUnfinished(this.address(prefix), signal);
  }

  private address(path: string): string {
    return this.root + path.slice(this.prefix.length);
  }
}
