/**
 * A store without the objects of one prefix: the server's own state, which its credentials reach and no submission may.
 * Listings leave them out; every other access to them is refused.
 */
import { posix } from "node:path";
import { ServiceError } from "../contracts/errors.ts";
import type { ListedObject, ListOptions, ObjectStore, WriteCondition } from "./object-store.ts";

const UNRESOLVED = /[^:]\/[/.]/;

export class ClosedPrefix implements ObjectStore {
  private readonly store: ObjectStore;
  private readonly closed: string;

  /** `closed`: an address that ends with a slash. */
  constructor(store: ObjectStore, closed: string) {
    this.store = store;
    this.closed = closed;
  }

  parallelListings(prefix: string): number {
    return this.store.parallelListings(prefix);
  }

  async *list(prefix: string, options: ListOptions): AsyncGenerator<ListedObject[]> {
    this.assertOpen(prefix);
    // An empty page still says that the store responds.
    for await (const page of this.store.list(prefix, options))
      yield page.some(({ path }) => this.isClosed(path))
        ? page.filter(({ path }) => !this.isClosed(path))
        : page;
  }

  async open(path: string, etag?: string) {
    this.assertOpen(path);
    return this.store.open(path, etag);
  }

  async put(path: string, body: Uint8Array, condition?: WriteCondition) {
    this.assertOpen(path);
    return this.store.put(path, body, condition);
  }

  async create(path: string) {
    this.assertOpen(path);
    return this.store.create(path);
  }

  async remove(path: string) {
    this.assertOpen(path);
    return this.store.remove(path);
  }

  async knowsConditions(prefix: string) {
    this.assertOpen(prefix);
    return (await this.store.knowsConditions?.(prefix)) ?? false;
  }

  /** Only what uploads have left; an upload below the prefix may be in progress. */
  async removeUnfinished(prefix: string, signal?: AbortSignal) {
    this.assertOpen(prefix);
    return this.store.removeUnfinished(prefix, signal);
  }

  /** Some servers resolve `.`, `..` and empty segments of a key, as a file system does. */
  private isClosed(address: string): boolean {
    if (address.startsWith(this.closed)) return true;
    return UNRESOLVED.test(address) && resolved(address).startsWith(resolved(this.closed));
  }

  private assertOpen(address: string): void {
    if (!this.isClosed(address)) return;
    throw new ServiceError(
      "path_not_allowed",
      `"${address}" is in the state of the server (--state), which jobs may not access; put the file elsewhere`,
    );
  }
}

function resolved(address: string): string {
  const start = address.indexOf("://") + "://".length;
  return address.slice(0, start) + posix.normalize(address.slice(start));
}
