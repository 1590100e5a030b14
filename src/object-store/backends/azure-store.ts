/** `az://container/key`: Azure Blob Storage. It lists in pages and reads by ranges; azure-writes.ts writes. */
import type { RestError } from "@azure/storage-blob";
import { PARALLEL_LISTINGS, STORE_SILENCE_MS } from "../../contracts/limits/stores.ts";
import { assertBelow, tokenAfter } from "../listing/listing-page.ts";
import { LISTING_SLICES } from "../listing/listing-slices.ts";
import {
  type ListedObject,
  type ListOptions,
  ObjectChanged,
  type ObjectStore,
  type OpenObject,
  type Upload,
  type WriteCondition,
  type Written,
} from "../object-store.ts";
import { RangedObject } from "../ranged-object.ts";
import { bucketAndKey } from "../store-path.ts";
import { type AzureAccess, type AzureOptions, openAzure, toStoreError } from "./azure-access.ts";
import { AzureWrites } from "./azure-writes.ts";

/** Azure allows 5,000, but so many names of 1,024 characters, escaped, do not fit into STORE_PAGE_BYTES_MAX. */
const PAGE = 2000;

export class AzureStore implements ObjectStore {
  parallelListings(): number {
    return PARALLEL_LISTINGS;
  }

  private readonly options: AzureOptions;
  private readonly writes = new AzureWrites(() => this.access());
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
      if (LISTING_SLICES.isOver) await LISTING_SLICES.rest();
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
          throw toStoreError(error, prefix, identity, "read");
        });
      assertBelow(prefix, page.objects);
      // Azure cannot list from a name on: earlier names are listed again and dropped.
      const behind = page.objects.filter(
        ({ key }) => last === undefined || Buffer.compare(Buffer.from(key), last) > 0,
      );
      yield behind.map(({ key, bytes }) => ({ path: `az://${bucket}/${key}`, bytes }));
      token = tokenAfter(token, page, prefix);
      if (token === undefined) return;
    }
  }

  async open(path: string, etag?: string): Promise<OpenObject> {
    const { bucket, key } = bucketAndKey(path);
    const { service, identity } = await this.access();
    const blob = service.getContainerClient(bucket).getBlobClient(key);
    const refuse = (error: RestError) => {
      throw toStoreError(error, path, identity, "read");
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

  put(path: string, body: Uint8Array, condition?: WriteCondition): Promise<Written> {
    return this.writes.put(path, body, condition);
  }

  async create(path: string): Promise<Upload> {
    return this.writes.create(path);
  }

  remove(path: string): Promise<void> {
    return this.writes.remove(path);
  }

  async removeUnfinished(): Promise<void> {}

  private access(): Promise<AzureAccess> {
    this.opened ??= openAzure(this.options);
    return this.opened;
  }
}
