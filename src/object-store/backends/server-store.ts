/**
 * `quern://outputs/`: a directory of the server itself, for outputs without a bucket
 * (docs/contract/output.md#in-the-server). Nobody reads input from it.
 */
import { join } from "node:path";
import type { FileStore } from "../files/file-store.ts";
import type { ListedObject, ListOptions, ObjectStore, WriteCondition } from "../object-store.ts";
import { fileAddress } from "../store-path.ts";

/** What its addresses begin with. */
export const SERVER_PREFIX = "quern://outputs/";

export class ServerStore implements ObjectStore {
  private readonly files: FileStore;
  private readonly root: string;

  /** `files` may access `directory`, which is absolute. */
  constructor(files: FileStore, directory: string) {
    this.files = files;
    this.root = fileAddress(join(directory, "/"));
  }

  parallelListings(): number {
    return 1;
  }

  async *list(prefix: string, options: ListOptions): AsyncGenerator<ListedObject[]> {
    const after = options.after === undefined ? undefined : this.address(options.after);
    for await (const page of this.files.list(this.address(prefix), { ...options, after }))
      yield page.map(({ path, bytes }) => ({ path: SERVER_PREFIX + path.slice(this.root.length), bytes }));
  }

  open(path: string) {
    return this.files.open(this.address(path));
  }

  put(path: string, body: Uint8Array, condition?: WriteCondition) {
    return this.files.put(this.address(path), body, condition);
  }

  create(path: string) {
    return this.files.create(this.address(path));
  }

  remove(path: string) {
    return this.files.remove(this.address(path));
  }

  knowsConditions(prefix: string) {
    return this.files.knowsConditions(this.address(prefix));
  }

  removeUnfinished(prefix: string) {
    return this.files.removeUnfinished(this.address(prefix));
  }

  private address(path: string): string {
    return this.root + path.slice(SERVER_PREFIX.length);
  }
}
