/**
 * Directories that never change once they are complete: projects, and what applications computed. With `--state` each is
 * one object, and its directory is a copy that is fetched when somebody needs it. Without, the directory is all there is.
 */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readdir, rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { extract, Pack } from "tar";
import { removeTree } from "../base/files/remove-tree.ts";
import { sync } from "../base/files/sync.ts";
import { ServiceError } from "../contracts/errors.ts";
import { STORE_READ_BYTES } from "../contracts/limits/stores.ts";
import { ObjectMissing, type ObjectStore, type OpenObject } from "../object-store/object-store.ts";
import { isThere, removeBelow, stateAddress, uploadObject } from "./state-store.ts";

/** Directories by name. */
export interface Trees {
  /**
   * Makes the directory durable in the state, unless it is there. `paths`: only these files of it. `isPatient`: waits
   * while the store does not respond.
   */
  keep(name: string, paths?: readonly string[], isPatient?: boolean): Promise<void>;
  /**
   * The directory is on the disk when this resolves; false if the state has none. Errors are those of the store.
   * `isPatient`: waits while the store does not respond.
   */
  fetch(name: string, isPatient?: boolean): Promise<boolean>;
  /** Removes it from the state. The directory stays. */
  remove(name: string): Promise<void>;
  /** Removes all whose names begin with `prefix` from the state, except those that are kept. */
  removeAll(prefix: string, isKept?: (name: string) => boolean): Promise<void>;
  /** The directories on the disk are copies, which can be fetched again. */
  readonly areCopies: boolean;
}

/** Without a state, directories are where they are. */
export const ON_DISK_ONLY: Trees = {
  keep: async () => {},
  fetch: async () => true,
  remove: async () => {},
  removeAll: async () => {},
  areCopies: false,
};

export interface StoredTreesOptions {
  /** For requests, which wait for it only for moments. */
  store: ObjectStore;
  /** For work that goes on by itself. */
  patient: ObjectStore;
  /** The first part of the objects' names. */
  kind: string;
  directoryOf: (name: string) => string;
  /** A name beside the directory, which the next start removes if this one is killed meanwhile. */
  incomingOf: (name: string, chance: string) => string;
  /** Whether a fetched directory is what was kept. */
  isWhole?: (name: string, directory: string) => Promise<boolean>;
}

export class StoredTrees implements Trees {
  readonly areCopies = true;
  private readonly options: StoredTreesOptions;
  private readonly fetching = new Map<string, Promise<boolean>>();

  constructor(options: StoredTreesOptions) {
    this.options = options;
  }

  async keep(name: string, paths?: readonly string[], isPatient = false): Promise<void> {
    const { directoryOf } = this.options;
    const store = this.storeFor(isPatient);
    const address = this.address(name);
    if (await isThere(store, address)) return;
    const directory = directoryOf(name);
    await uploadObject(store, address, archiveOf(directory, paths ?? (await readdir(directory))));
  }

  /** Those who need the same directory at once share one download. */
  async fetch(name: string, isPatient = false): Promise<boolean> {
    if (existsSync(this.options.directoryOf(name))) return true;
    const key = `${name} ${isPatient}`;
    const running = this.fetching.get(key);
    if (running !== undefined) return running;
    const fetched = this.fetchOnce(name, isPatient).finally(() => this.fetching.delete(key));
    this.fetching.set(key, fetched);
    return fetched;
  }

  remove(name: string): Promise<void> {
    return this.options.store.remove(this.address(name));
  }

  async removeAll(prefix: string, isKept: (name: string) => boolean = () => false): Promise<void> {
    const root = stateAddress(`${this.options.kind}/`);
    const nameOf = (address: string) => address.slice(root.length, -".tar".length);
    await removeBelow(this.options.store, root + prefix, (address) => isKept(nameOf(address)));
  }

  private async fetchOnce(name: string, isPatient: boolean): Promise<boolean> {
    const { directoryOf, incomingOf, isWhole } = this.options;
    const store = this.storeFor(isPatient);
    const directory = directoryOf(name);
    const incoming = incomingOf(name, randomBytes(6).toString("hex"));
    await mkdir(incoming, { recursive: true, mode: 0o700 });
    try {
      if (!(await download(store, this.address(name), incoming))) return false;
      if (isWhole !== undefined && !(await isWhole(name, incoming))) throw damaged(this.address(name));
      await syncTree(incoming);
      await mkdir(dirname(directory), { recursive: true, mode: 0o700 });
      await rename(incoming, directory).catch((error: NodeJS.ErrnoException) => {
        // A deployment of the same files has put it there meanwhile.
        if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
      });
      await sync(dirname(directory));
      return true;
    } finally {
      await removeTree(incoming);
    }
  }

  private storeFor(isPatient: boolean): ObjectStore {
    return isPatient ? this.options.patient : this.options.store;
  }

  private address(name: string): string {
    return stateAddress(`${this.options.kind}/${name}.tar`);
  }
}

function archiveOf(cwd: string, paths: readonly string[]): Readable {
  // `a:b` is a file name here, not a file on a drive. Times stay: they tell deployed files from those written later.
  const pack = new Pack({ cwd, portable: true, preservePaths: true });
  for (const path of paths) pack.add(path);
  pack.end();
  return Readable.from(pack);
}

/** False if there is no such object. */
async function download(store: ObjectStore, address: string, into: string): Promise<boolean> {
  let object: OpenObject | undefined;
  try {
    object = await store.open(address);
    await pipeline(
      Readable.from(bytesOf(object)),
      extract({ cwd: into, strict: true, preserveOwner: false }),
    );
    return true;
  } catch (error) {
    if (error instanceof ObjectMissing) return false;
    throw error;
  } finally {
    await object?.close();
  }
}

async function* bytesOf(object: OpenObject): AsyncGenerator<Buffer> {
  for (let position = 0; ; ) {
    const buffer = Buffer.allocUnsafe(STORE_READ_BYTES);
    const bytes = await object.read(buffer, 0, position, STORE_READ_BYTES);
    if (bytes === 0) return;
    position += bytes;
    yield buffer.subarray(0, bytes);
  }
}

/** A directory that survives a power failure must not have empty files: nobody would fetch it again. */
async function syncTree(directory: string): Promise<void> {
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true }))
    if (entry.isFile() || entry.isDirectory()) await sync(join(entry.parentPath, entry.name));
  await sync(directory);
}

function damaged(address: string): ServiceError {
  return new ServiceError(
    "wrong_state",
    `${address} in the server's state is damaged: it does not have the files that were deployed; deploy them again`,
  );
}
