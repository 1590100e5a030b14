/**
 * `gs://`: Google Cloud Storage. It lists in pages of 1,000 and reads by ranges; the etag of an object is its generation.
 * gcs-writes.ts writes.
 */
import { PARALLEL_LISTINGS } from "../../contracts/limits/stores.ts";
import { PATH_BYTES_MAX } from "../../contracts/limits/submissions.ts";
import {
  assertBelow,
  checkedToken,
  type ListingPage,
  readEntries,
  tokenAfter,
} from "../listing/listing-page.ts";
import { LISTING_SLICES } from "../listing/listing-slices.ts";
import {
  type ListedObject,
  type ListOptions,
  ObjectChanged,
  ObjectMissing,
  type ObjectStore,
  type OpenObject,
  type Upload,
  type WriteCondition,
  type Written,
} from "../object-store.ts";
import { RangedObject } from "../ranged-object.ts";
import { bucketAndKey } from "../store-path.ts";
import { GcsClient, type GcsOptions, type GcsRequest } from "./gcs-client.ts";
import { GcsWrites, generationOf, noBucket, sizeOf } from "./gcs-writes.ts";

const PAGE = "1000";

/** A listing as the store sent it, unchecked. */
interface Listing {
  items?: unknown;
  nextPageToken?: unknown;
}

export class GcsStore implements ObjectStore {
  private readonly client: GcsClient;
  private readonly writes: GcsWrites;

  constructor(options: GcsOptions) {
    this.client = new GcsClient(options);
    this.writes = new GcsWrites(this.client);
  }

  parallelListings(): number {
    return PARALLEL_LISTINGS;
  }

  async *list(prefix: string, { after, signal }: ListOptions): AsyncGenerator<ListedObject[]> {
    const { bucket, key } = bucketAndKey(prefix);
    const last = after === undefined ? undefined : bucketAndKey(after).key;
    const query = new URLSearchParams({
      prefix: key,
      maxResults: PAGE,
      fields: "items(name,size),nextPageToken",
      ...(last === undefined ? {} : { startOffset: last }),
    });
    for (let token: string | undefined; ; ) {
      if (LISTING_SLICES.isOver) await LISTING_SLICES.rest();
      signal?.throwIfAborted();
      const asked = { address: `storage/v1/b/${bucket}/o?${query}`, path: prefix, access: "read" } as const;
      const page = await this.client.ask(asked, pageOf, (cause) => noBucket(prefix, cause));
      assertBelow(prefix, page.objects);
      // `startOffset` is inclusive.
      const behind = page.objects.filter(({ key }) => key !== last);
      yield behind.map(({ key, bytes }) => ({ path: `gs://${bucket}/${key}`, bytes }));
      token = tokenAfter(token, page, prefix);
      if (token === undefined) return;
      query.set("pageToken", token);
    }
  }

  /** The etag is the generation: the one that was enqueued still exists, or is gone. */
  async open(path: string, etag?: string): Promise<OpenObject> {
    const { bucket, key } = bucketAndKey(path);
    const object = {
      address: `storage/v1/b/${bucket}/o/${encodeURIComponent(key)}`,
      path,
      access: "read",
    } as const;
    const source =
      etag === undefined ? await this.generation(object) : { etag, bytes: Number.POSITIVE_INFINITY };
    return new RangedObject({
      path,
      ...source,
      request: async (start, end, signal) => {
        const { answer, refusal } = await this.client.send({
          ...object,
          address: `${object.address}?alt=media&generation=${source.etag}`,
          // Asks for bytes as they are stored: without `accept-encoding`, the service decompresses what was uploaded as
          // gzip.
          headers: { range: `bytes=${start}-${end - 1}`, "accept-encoding": "gzip" },
          signal,
        });
        if (answer.statusCode! < 300)
          return { stream: answer, contentRange: answer.headers["content-range"] };
        if (answer.statusCode === 416) return undefined;
        if (answer.statusCode === 404) throw new ObjectChanged(path);
        throw await refusal();
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

  private generation(object: GcsRequest): Promise<{ etag: string; bytes: number }> {
    const missing = (cause: Error) => new ObjectMissing(object.path, cause);
    const asked = { ...object, address: `${object.address}?fields=generation,size` };
    return this.client.ask(asked, generationOf, missing);
  }
}

async function pageOf({ items = [], nextPageToken }: Listing): Promise<ListingPage> {
  if (!Array.isArray(items)) throw new Error("its listing has no list of items");
  if (nextPageToken !== undefined && typeof nextPageToken !== "string")
    throw new Error("its listing has a nextPageToken that is no string");
  const nextToken = nextPageToken === undefined ? undefined : checkedToken(nextPageToken);
  const objects = await readEntries(items as unknown[], (item) => {
    const { name, size } = Object(item) as { name?: unknown; size?: unknown };
    const bytes = sizeOf(size);
    if (typeof name === "string" && name !== "" && name.length <= PATH_BYTES_MAX && bytes !== undefined)
      return { key: name, bytes };
    const entry = JSON.stringify(item).slice(0, 200);
    throw new Error(`its listing has an entry without a name or a size: ${entry}`);
  });
  return { objects, nextToken };
}
