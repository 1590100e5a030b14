/** `az://container/key`: Azure Blob Storage through its own client, an optional peer dependency. */
import type { DefaultAzureCredential } from "@azure/identity";
import type { BlobServiceClient, RestError, StorageSharedKeyCredential } from "@azure/storage-blob";
import { ServiceError } from "../../contracts/errors.ts";
import { PARALLEL_LISTINGS, STORE_SILENCE_MS } from "../../contracts/limits/stores.ts";
import {
  type ListedObject,
  type ListOptions,
  ObjectChanged,
  ObjectMissing,
  type ObjectStore,
  type OpenObject,
} from "../object-store.ts";
import { RangedObject } from "../ranged-object.ts";
import { storeError } from "../store-errors.ts";
import { bucketAndKey } from "../store-path.ts";
import { AzureClient } from "./azure-client.ts";

/** Azure allows 5,000, but so many names of 1,024 characters, escaped, do not fit into STORE_PAGE_BYTES_MAX. */
const PAGE = 2000;
/** Few: jobs wait for a store themselves (patient-store.ts). */
const RETRIES = { maxTries: 2, retryDelayInMs: 200 };

export interface AzureOptions {
  /** AZURE_STORAGE_CONNECTION_STRING, _ACCOUNT, _KEY and _SAS_TOKEN, as Azure's own tools read them. */
  connectionString: string | undefined;
  account: string | undefined;
  key: string | undefined;
  sasToken: string | undefined;
}

type Credential = StorageSharedKeyCredential | DefaultAzureCredential | undefined;

interface AzureAccess {
  service: BlobServiceClient;
  client: AzureClient;
  identity: string;
}

export class AzureStore implements ObjectStore {
  parallelListings(): number {
    return PARALLEL_LISTINGS;
  }

  private readonly options: AzureOptions;
  private opened: Promise<AzureAccess> | undefined;

  constructor(options: AzureOptions) {
    this.options = options;
  }

  async *list(prefix: string, { after, signal }: ListOptions): AsyncGenerator<ListedObject[]> {
    const { bucket, key } = bucketAndKey(prefix);
    const { service, client, identity } = await this.access();
    const last = after === undefined ? undefined : Buffer.from(bucketAndKey(after).key);
    const container = service.getContainerClient(bucket);
    for (let token: string | undefined; ; ) {
      signal?.throwIfAborted();
      // Each page is a listing, because a signal covers a whole listing and each page needs a new timeout.
      const abortSignal = AbortSignal.timeout(STORE_SILENCE_MS);
      const pages = container
        .listBlobsFlat({ prefix: key, abortSignal })
        .byPage({ maxPageSize: PAGE, ...(token === undefined ? {} : { continuationToken: token }) });
      const page = await pages
        .next()
        .then(() => client.pageOf(abortSignal))
        .catch((error: RestError) => {
          throw toStoreError(error, prefix, identity);
        });
      // Azure cannot list from a name on: earlier names are listed again and dropped.
      const behind = page.objects.filter(
        ({ key }) => last === undefined || Buffer.compare(Buffer.from(key), last) > 0,
      );
      if (behind.length > 0) yield behind.map(({ key, bytes }) => ({ path: `az://${bucket}/${key}`, bytes }));
      token = page.nextToken;
      if (token === undefined) return;
    }
  }

  async open(path: string, etag?: string): Promise<OpenObject> {
    const { bucket, key } = bucketAndKey(path);
    const { service, identity } = await this.access();
    const blob = service.getContainerClient(bucket).getBlobClient(key);
    const refuse = (error: RestError) => {
      throw toStoreError(error, path, identity);
    };
    const known =
      etag === undefined
        ? await blob.getProperties({ abortSignal: AbortSignal.timeout(STORE_SILENCE_MS) }).catch(refuse)
        : undefined;
    const source = { etag: etag ?? known!.etag!, bytes: known?.contentLength ?? Number.POSITIVE_INFINITY };
    return new RangedObject({
      path,
      ...source,
      request: async (start, end, abortSignal) => {
        try {
          const conditions = { ifMatch: source.etag };
          const answer = await blob.download(start, end - start, {
            abortSignal,
            conditions,
            maxRetryRequests: 0,
          });
          const stream = answer.readableStreamBody as import("node:stream").Readable;
          return { stream, contentRange: answer.contentRange };
        } catch (error) {
          if ((error as RestError).statusCode === 416) return undefined;
          if ((error as RestError).statusCode === 412) throw new ObjectChanged(path);
          return refuse(error as RestError);
        }
      },
    });
  }

  private access(): Promise<AzureAccess> {
    this.opened ??= openAzure(this.options);
    return this.opened;
  }
}

/**
 * Opens Azure with a connection string, an account's key or signature, or Azure's usual chain. Without any of them,
 * access is anonymous.
 */
async function openAzure(options: AzureOptions): Promise<AzureAccess> {
  const { connectionString, account, key, sasToken } = options;
  const blobs = await import("@azure/storage-blob").catch(needsClient("@azure/storage-blob"));
  const client = new AzureClient(blobs.RestError);
  const pipeline = { retryOptions: RETRIES, httpClient: client };
  if (connectionString !== undefined) {
    const service = blobs.BlobServiceClient.fromConnectionString(connectionString, pipeline);
    return { service, client, identity: "AZURE_STORAGE_CONNECTION_STRING" };
  }
  if (account === undefined)
    throw new ServiceError(
      "store_forbidden",
      "az:// needs the storage account: set AZURE_STORAGE_CONNECTION_STRING or AZURE_STORAGE_ACCOUNT for the server",
    );
  const url = `https://${account}.blob.core.windows.net`;
  const open = (address: string, credential: Credential, identity: string) => ({
    service: new blobs.BlobServiceClient(address, credential, pipeline),
    client,
    identity,
  });
  if (key !== undefined)
    return open(url, new blobs.StorageSharedKeyCredential(account, key), "AZURE_STORAGE_KEY");
  if (sasToken !== undefined)
    return open(`${url}?${sasToken.replace(/^\?/, "")}`, undefined, "AZURE_STORAGE_SAS_TOKEN");
  const identity = await import("@azure/identity").catch(needsClient("@azure/identity"));
  const credential = new identity.DefaultAzureCredential();
  const problem = await credential.getToken("https://storage.azure.com/.default").then(
    () => undefined,
    (error: Error) => error.message.split("\n")[0],
  );
  return problem === undefined
    ? open(url, credential, "Azure's default credential")
    : open(url, undefined, `no credentials (${problem})`);
}

function needsClient(name: string): (error: Error) => never {
  return (error) => {
    const message = `az:// needs Azure's client, installed next to the server: npm install @azure/storage-blob @azure/identity (${name} is missing)`;
    throw new ServiceError("not_supported_yet", message, { cause: error });
  };
}

function toStoreError(error: RestError, path: string, identity: string): Error {
  if (error.code === "ContainerNotFound")
    return new ServiceError(
      "bucket_not_found",
      `there is no container for ${path}: check its name and AZURE_STORAGE_ACCOUNT`,
      { cause: error },
    );
  if (error.statusCode === 404) return new ObjectMissing(path, error);
  const cure =
    "give the server credentials that may list and read it (AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY, or a role)";
  return storeError(error, { path, status: error.statusCode, identity, cure });
}
