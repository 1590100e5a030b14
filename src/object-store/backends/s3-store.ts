/**
 * `s3://`: Amazon S3 and stores with its protocol. It lists in pages of 1,000, one page ahead, and reads by ranges.
 * s3-writes.ts writes.
 */
import type { S3ServiceException } from "@aws-sdk/client-s3";
import { PARALLEL_LISTINGS } from "../../contracts/limits/stores.ts";
import { s3Sdk } from "../aws-sdk.ts";
import { assertBelow, type ListingPage, tokenAfter } from "../listing/listing-page.ts";
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
import { RangedObject, type RangeSource } from "../ranged-object.ts";
import { bucketAndKey } from "../store-path.ts";
import { openS3, type S3Access, type S3Options } from "./s3-client.ts";
import { takePage } from "./s3-listing.ts";
import { toObjectError, toStoreError } from "./s3-requests.ts";
import { S3Writes } from "./s3-writes.ts";

/** Credentials may appear later: while it is anonymous, the store looks for them again after this time. */
const ANONYMOUS_KEPT_MS = 60_000;
/** Begins the version of an object that has no ETag. */
const MODIFIED = "modified ";

export class S3Store implements ObjectStore {
  parallelListings(): number {
    return PARALLEL_LISTINGS;
  }

  private readonly options: S3Options;
  private readonly writes = new S3Writes(() => this.access());
  private opened: Promise<S3Access> | undefined;
  private openedMs = 0;

  constructor(options: S3Options) {
    this.options = options;
  }

  async *list(prefix: string, { after, signal }: ListOptions): AsyncGenerator<ListedObject[]> {
    signal?.throwIfAborted();
    const { bucket, key } = bucketAndKey(prefix);
    const abort = new AbortController();
    const end = () => abort.abort();
    signal?.addEventListener("abort", end);
    const startAfter = after === undefined ? undefined : bucketAndKey(after).key;
    let coming: Promise<ListingPage> | undefined = this.page(bucket, key, { startAfter }, abort.signal);
    try {
      for (let token: string | undefined; coming !== undefined; ) {
        const page: ListingPage = await coming;
        const { objects } = page;
        assertBelow(prefix, objects);
        token = tokenAfter(token, page, prefix);
        coming = token === undefined ? undefined : this.page(bucket, key, { token }, abort.signal);
        coming?.catch(() => {});
        yield objects.map((object) => ({ path: `s3://${bucket}/${object.key}`, bytes: object.bytes }));
      }
    } finally {
      signal?.removeEventListener("abort", end);
      end();
    }
  }

  async open(path: string, etag?: string): Promise<OpenObject> {
    const source =
      etag === undefined ? await this.head(path) : { path, etag, bytes: Number.POSITIVE_INFINITY };
    return new RangedObject({
      ...source,
      request: (start, end, signal) => this.range(path, source.etag, `bytes=${start}-${end - 1}`, signal),
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

  removeUnfinished(prefix: string, signal?: AbortSignal): Promise<void> {
    return this.writes.removeUnfinished(prefix, signal);
  }

  private async page(
    bucket: string,
    key: string,
    from: { startAfter?: string | undefined; token?: string },
    abortSignal: AbortSignal,
  ): Promise<ListingPage> {
    const { ListObjectsV2Command } = await s3Sdk();
    const command = new ListObjectsV2Command({
      Bucket: bucket,
      Prefix: key,
      StartAfter: from.startAfter,
      ContinuationToken: from.token,
      // Keys may have characters that XML does not allow.
      EncodingType: "url",
    });
    const { client, identity } = await this.access();
    if (LISTING_SLICES.isOver) await LISTING_SLICES.rest();
    let page: ListingPage | undefined;
    takePage(command, (taken) => {
      page = taken;
    });
    await client.send(command, { abortSignal }).catch((error: S3ServiceException) => {
      throw toStoreError(error, `s3://${bucket}/${key}`, identity, "read");
    });
    return page!;
  }

  private async head(path: string): Promise<Omit<RangeSource, "request">> {
    const { HeadObjectCommand } = await s3Sdk();
    const { bucket, key } = bucketAndKey(path);
    const { client, identity } = await this.access();
    try {
      const found = await client.send(new HeadObjectCommand({ Bucket: bucket, Key: key }));
      const { ContentLength: bytes = Number.NaN } = found;
      // Some servers leave the length out. The object is read to its end then.
      return { path, etag: versionOf(found), bytes: Number.isSafeInteger(bytes) ? bytes : Infinity };
    } catch (error) {
      throw toObjectError(error as S3ServiceException, path, identity);
    }
  }

  private async range(path: string, etag: string, range: string, abortSignal: AbortSignal) {
    const { GetObjectCommand } = await s3Sdk();
    const { bucket, key } = bucketAndKey(path);
    const { client, identity } = await this.access();
    const IfMatch = etag.startsWith(MODIFIED) ? undefined : etag;
    const command = new GetObjectCommand({ Bucket: bucket, Key: key, Range: range, IfMatch });
    try {
      const found = await client.send(command, { abortSignal });
      const stream = found.Body as import("node:stream").Readable;
      // Some stores ignore If-Match.
      if (versionOf(found) === etag) return { stream, contentRange: found.ContentRange };
      stream.destroy();
    } catch (error) {
      const { $metadata } = error as S3ServiceException;
      if ($metadata?.httpStatusCode === 416) return undefined;
      if ($metadata?.httpStatusCode !== 412) throw toObjectError(error as S3ServiceException, path, identity);
    }
    throw new ObjectChanged(path);
  }

  private async access(): Promise<S3Access> {
    const isStale = performance.now() - this.openedMs > ANONYMOUS_KEPT_MS;
    if (this.opened === undefined || (isStale && (await this.opened).isAnonymous)) {
      this.opened = openS3(this.options);
      this.openedMs = performance.now();
    }
    return this.opened;
  }
}

/**
 * The ETag, or else the time of the last change in seconds: gateways have no ETag of files that they did not write.
 */
function versionOf({
  ETag,
  LastModified,
}: {
  ETag?: string | undefined;
  LastModified?: Date | undefined;
}): string {
  return ETag ?? `${MODIFIED}${LastModified?.toISOString() ?? ""}`;
}
