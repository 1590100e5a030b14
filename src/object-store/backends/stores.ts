/** Combines all stores into one: an address goes to the store of its scheme. Clients are loaded on first use. */

import type { StoreScheme } from "../../contracts/store-paths.ts";
import { ClosedPrefix } from "../closed-prefix.ts";
import type { LocalRoot } from "../files/allowed-paths.ts";
import { FileStore } from "../files/file-store.ts";
import type { ListOptions, ObjectStore, WriteCondition } from "../object-store.ts";
import { fileAddress } from "../store-path.ts";
import { AzureStore } from "./azure-store.ts";
import { GcsStore } from "./gcs-store.ts";
import { S3Store } from "./s3-store.ts";
import { OWN_PREFIX, SERVER_PREFIX, ServerStore } from "./server-store.ts";

export interface StoresOptions {
  /** The directories that `file://` may access. */
  roots: readonly LocalRoot[];
  /** The real path of the data directory, which `file://` never accesses. */
  dataDir: string;
  /** The directory for outputs in the server, which exists. */
  outputsDirectory: string;
  temporaryDirectory: string;
  /** The environment variables that configure the clouds. */
  env: NodeJS.ProcessEnv;
}

/** The state of a server in an object store (`--state`): nobody reaches it by an address of a submission. */
export interface StatePlace {
  /** The address of its prefix, with a slash at its end. */
  address: string;
  store: ObjectStore;
}

export function openStores(options: StoresOptions, state?: StatePlace): ObjectStore {
  const { roots, dataDir, temporaryDirectory } = options;
  const closed = (store: ObjectStore) =>
    state === undefined ? store : new ClosedPrefix(store, state.address);
  const { s3, gs, az } = bucketStores(options.env);
  return new Stores({
    quern:
      state === undefined
        ? inDirectory(options)
        : new ServerStore(state.store, OWN_PREFIX, state.address, true),
    file: closed(new FileStore(roots, temporaryDirectory, dataDir)),
    ...{ s3: closed(s3), gs: closed(gs), az: closed(az) },
  });
}

/**
 * The store of a server's state, whose addresses are the store's own. `directory`: for `file://`, the one directory that
 * it may access; it exists.
 */
export function openStateStore(
  env: NodeJS.ProcessEnv,
  directory: string | undefined,
  temporaryDirectory: string,
): ObjectStore {
  const roots = directory === undefined ? [] : [{ path: directory, isReadOnly: false }];
  const file = new FileStore(roots, temporaryDirectory, undefined);
  return new Stores({ ...bucketStores(env), file, quern: file });
}

function inDirectory({ outputsDirectory, temporaryDirectory }: StoresOptions): ServerStore {
  const own = [{ path: outputsDirectory, isReadOnly: false }];
  const files = new FileStore(own, temporaryDirectory, undefined);
  return new ServerStore(files, SERVER_PREFIX, `${fileAddress(outputsDirectory)}/`);
}

function bucketStores(env: NodeJS.ProcessEnv) {
  return {
    s3: new S3Store({ endpoint: env.AWS_ENDPOINT_URL_S3 ?? env.AWS_ENDPOINT_URL }),
    gs: new GcsStore({ emulator: env.STORAGE_EMULATOR_HOST }),
    az: new AzureStore({
      connectionString: env.AZURE_STORAGE_CONNECTION_STRING,
      account: env.AZURE_STORAGE_ACCOUNT,
      key: env.AZURE_STORAGE_KEY,
      sasToken: env.AZURE_STORAGE_SAS_TOKEN,
    }),
  };
}

/** Those that callers may name, and the server's own. */
type Scheme = StoreScheme | "quern";

class Stores implements ObjectStore {
  private readonly byScheme: Record<Scheme, ObjectStore>;

  constructor(byScheme: Record<Scheme, ObjectStore>) {
    this.byScheme = byScheme;
  }

  parallelListings(prefix: string): number {
    return this.of(prefix).parallelListings(prefix);
  }

  list(prefix: string, options: ListOptions) {
    return this.of(prefix).list(prefix, options);
  }

  open(path: string, etag?: string) {
    return this.of(path).open(path, etag);
  }

  put(path: string, body: Uint8Array, condition?: WriteCondition) {
    return this.of(path).put(path, body, condition);
  }

  create(path: string) {
    return this.of(path).create(path);
  }

  remove(path: string) {
    return this.of(path).remove(path);
  }

  async knowsConditions(prefix: string) {
    return (await this.of(prefix).knowsConditions?.(prefix)) ?? false;
  }

  removeUnfinished(prefix: string, signal?: AbortSignal) {
    return this.of(prefix).removeUnfinished(prefix, signal);
  }

  private of(address: string): ObjectStore {
    return this.byScheme[address.slice(0, address.indexOf("://")) as Scheme];
  }
}
