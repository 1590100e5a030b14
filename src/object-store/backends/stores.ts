/** Combines all stores into one: an address goes to the store of its scheme. Clients are loaded on first use. */

import type { StoreScheme } from "../../contracts/store-paths.ts";
import type { ListOptions, ObjectStore } from "../object-store.ts";
import { AzureStore } from "./azure-store.ts";
import { FileStore } from "./file-store.ts";
import { GcsStore } from "./gcs-store.ts";
import { S3Store } from "./s3-store.ts";

export interface StoresOptions {
  /** Real paths of the directories that `file://` may read. */
  roots: readonly string[];
  /** The real path of the data directory, which `file://` never reads. */
  dataDir: string;
  temporaryDirectory: string;
  /** The environment variables that configure the clouds. */
  env: NodeJS.ProcessEnv;
}

export function openStores({ roots, dataDir, temporaryDirectory, env }: StoresOptions): ObjectStore {
  return new Stores({
    file: new FileStore(roots, temporaryDirectory, dataDir),
    s3: new S3Store({ endpoint: env.AWS_ENDPOINT_URL_S3 ?? env.AWS_ENDPOINT_URL }),
    gs: new GcsStore({ emulator: env.STORAGE_EMULATOR_HOST }),
    az: new AzureStore({
      connectionString: env.AZURE_STORAGE_CONNECTION_STRING,
      account: env.AZURE_STORAGE_ACCOUNT,
      key: env.AZURE_STORAGE_KEY,
      sasToken: env.AZURE_STORAGE_SAS_TOKEN,
    }),
  });
}

class Stores implements ObjectStore {
  private readonly byScheme: Record<StoreScheme, ObjectStore>;

  constructor(byScheme: Record<StoreScheme, ObjectStore>) {
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

  private of(address: string): ObjectStore {
    return this.byScheme[address.slice(0, address.indexOf("://")) as StoreScheme];
  }
}
