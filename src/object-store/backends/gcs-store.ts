/**
 * `gs://`: Google Cloud Storage through its JSON API. Google's auth library, an optional peer dependency, finds the
 * credentials. Google's storage client is not used: it waits for ever if a connection breaks off in the middle of a
 * response.
 */

import { hasMoreValues } from "../../base/json/measure.ts";
import { ServiceError } from "../../contracts/errors.ts";
import {
  PARALLEL_LISTINGS,
  STORE_ERROR_BYTES_MAX,
  STORE_PAGE_BYTES_MAX,
  STORE_PAGE_VALUES_MAX,
  STORE_SILENCE_MS,
} from "../../contracts/limits/stores.ts";
import { PATH_BYTES_MAX } from "../../contracts/limits/submissions.ts";
import {
  type ListedObject,
  type ListOptions,
  ObjectChanged,
  ObjectMissing,
  type ObjectStore,
  type OpenObject,
} from "../object-store.ts";
import { RangedObject } from "../ranged-object.ts";
import { SentCredentials } from "../sent-credentials.ts";
import { storeError } from "../store-errors.ts";
import { bucketAndKey } from "../store-path.ts";
import { textOfStore } from "../text-of-store.ts";
import { get } from "./http-get.ts";
import type { ListingPage } from "./listing-xml.ts";

const GOOGLE = "https://storage.googleapis.com";
const SCOPE = "https://www.googleapis.com/auth/devstorage.read_only";
const PAGE = "1000";

export interface GcsOptions {
  /** STORAGE_EMULATOR_HOST: the operator's own store, used without credentials. */
  emulator: string | undefined;
}

interface GcsAccess {
  /** Address of the bucket collection. */
  base: string;
  identity: string;
  headers: () => Promise<Record<string, string>>;
}

/** A listing as the store sent it, unchecked. */
interface Listing {
  items?: unknown;
  nextPageToken?: unknown;
}

export class GcsStore implements ObjectStore {
  private readonly options: GcsOptions;
  private opened: Promise<GcsAccess> | undefined;

  constructor(options: GcsOptions) {
    this.options = options;
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
    for (;;) {
      signal?.throwIfAborted();
      const { objects, nextToken } = await this.ask(`${bucket}/o?${query}`, prefix, pageOf, (cause) => {
        const message = `there is no bucket for ${prefix}: check its name`;
        return new ServiceError("bucket_not_found", message, { cause });
      });
      // `startOffset` is inclusive.
      const behind = objects.filter(({ key }) => key !== last);
      if (behind.length > 0) yield behind.map(({ key, bytes }) => ({ path: `gs://${bucket}/${key}`, bytes }));
      if (nextToken === undefined) return;
      query.set("pageToken", nextToken);
    }
  }

  /** The etag is the generation: the one that was enqueued still exists, or is gone. */
  async open(path: string, etag?: string): Promise<OpenObject> {
    const { bucket, key } = bucketAndKey(path);
    const object = `${bucket}/o/${encodeURIComponent(key)}`;
    const source =
      etag === undefined ? await this.generation(object, path) : { etag, bytes: Number.POSITIVE_INFINITY };
    return new RangedObject({
      path,
      ...source,
      request: async (start, end, signal) => {
        // Asks for bytes as they are stored: without `accept-encoding`, the service decompresses what was uploaded as
        // gzip.
        const headers = { range: `bytes=${start}-${end - 1}`, "accept-encoding": "gzip" };
        const { answer, sent } = await this.get(
          `${object}?alt=media&generation=${source.etag}`,
          path,
          headers,
          signal,
        );
        if (answer.statusCode! < 300)
          return { stream: answer, contentRange: answer.headers["content-range"] };
        if (answer.statusCode === 416) return undefined;
        if (answer.statusCode === 404) throw new ObjectChanged(path);
        const body = await textOfStore(answer, STORE_ERROR_BYTES_MAX);
        throw await this.refusal(answer.statusCode!, path, sent.hideIn(body));
      },
    });
  }

  private generation(object: string, path: string): Promise<{ etag: string; bytes: number }> {
    const missing = (cause: Error) => new ObjectMissing(path, cause);
    return this.ask(`${object}?fields=generation,size`, path, generationOf, missing);
  }

  /**
   * Requests a JSON object and resolves to what `read` takes from it; `read` may throw. `missing` makes the error for a
   * 404.
   */
  private async ask<T>(
    address: string,
    path: string,
    read: (answer: object) => T,
    missing: (cause: Error) => Error,
  ): Promise<T> {
    const { answer, sent } = await this.get(address, path, {}, AbortSignal.timeout(STORE_SILENCE_MS));
    const broken = (error: Error): never => {
      throw storeError(sent.hideInError(error), { path, status: undefined, identity: "", cure: "" });
    };
    const isGood = answer.statusCode === 200;
    const body = await textOfStore(answer, isGood ? STORE_PAGE_BYTES_MAX : STORE_ERROR_BYTES_MAX).catch(
      broken,
    );
    if (isGood) {
      try {
        return read(objectOf(body));
      } catch (error) {
        return broken(error as Error);
      }
    }
    const refusal = await this.refusal(answer.statusCode!, path, sent.hideIn(body));
    throw answer.statusCode === 404 ? missing(refusal) : refusal;
  }

  private async get(address: string, path: string, headers: Record<string, string>, signal: AbortSignal) {
    const access = await this.access();
    const all = { ...(await access.headers()), ...headers };
    const answer = await get(`${access.base}/${address}`, all, signal).catch((error: Error) => {
      throw storeError(error, { path, status: undefined, identity: access.identity, cure: "" });
    });
    return { answer, sent: new SentCredentials(all) };
  }

  private async refusal(status: number, path: string, body: string): Promise<Error> {
    const { identity } = await this.access();
    const cure =
      "give the server credentials that may list and read it (GOOGLE_APPLICATION_CREDENTIALS, or the machine's service account)";
    return storeError(new Error(messageOf(body)), { path, status, identity, cure });
  }

  private access(): Promise<GcsAccess> {
    this.opened ??= openGcs(this.options);
    return this.opened;
  }
}

/**
 * Throws if the body is not a JSON object, which must not count as an empty listing. Throws also if it has too many
 * values: parsing them would block the event loop.
 */
function objectOf(body: string): object {
  const somethingElse = new Error(`it answered ${body.slice(0, 100)}`);
  if (hasMoreValues(Buffer.from(body), STORE_PAGE_VALUES_MAX)) throw somethingElse;
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw somethingElse;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw somethingElse;
  return value;
}

function pageOf({ items = [], nextPageToken }: Listing): ListingPage {
  if (!Array.isArray(items)) throw new Error("its listing has no list of items");
  if (nextPageToken !== undefined && typeof nextPageToken !== "string")
    throw new Error("its listing has a nextPageToken that is no string");
  const objects = (items as unknown[]).map((item) => {
    const { name, size } = Object(item) as { name?: unknown; size?: unknown };
    const bytes = sizeOf(size);
    if (typeof name === "string" && name !== "" && name.length <= PATH_BYTES_MAX && bytes !== undefined)
      return { key: name, bytes };
    const entry = JSON.stringify(item).slice(0, 200);
    throw new Error(`its listing has an entry without a name or a size: ${entry}`);
  });
  return { objects, nextToken: nextPageToken };
}

function generationOf(answer: { generation?: unknown; size?: unknown }): { etag: string; bytes: number } {
  const bytes = sizeOf(answer.size);
  const etag = String(answer.generation);
  if (/^\d{1,20}$/.test(etag) && bytes !== undefined) return { etag, bytes };
  throw new Error("it gives the object no generation or no size");
}

/** Google writes numbers as strings, other stores as numbers. */
function sizeOf(size: unknown): number | undefined {
  return /^\d{1,15}$/.test(String(size)) ? Number(size) : undefined;
}

function messageOf(body: string): string {
  try {
    return String((JSON.parse(body) as { error: { message: string } }).error.message);
  } catch {
    return body.slice(0, 200);
  }
}

/** The usual chain (GOOGLE_APPLICATION_CREDENTIALS, gcloud, the machine's account). Without credentials, anonymous. */
async function openGcs({ emulator }: GcsOptions): Promise<GcsAccess> {
  const anonymous = async () => ({});
  if (emulator !== undefined) {
    const host = emulator.replace(/\/(storage\/v1\/?)?$/, "");
    const base = `${host.includes("://") ? host : `http://${host}`}/storage/v1/b`;
    return { base, identity: "no credentials (STORAGE_EMULATOR_HOST)", headers: anonymous };
  }
  const base = `${GOOGLE}/storage/v1/b`;
  const { GoogleAuth } = await import("google-auth-library").catch((error: Error) => {
    const message =
      "gs:// needs Google's auth library, installed next to the server: npm install google-auth-library";
    throw new ServiceError("not_supported_yet", message, { cause: error });
  });
  try {
    const client = await new GoogleAuth({ scopes: SCOPE }).getClient();
    const headers = async () => Object.fromEntries(new Headers(await client.getRequestHeaders(base)));
    return { base, identity: "the server's Google credentials", headers };
  } catch (error) {
    const [why] = (error as Error).message.split("\n");
    return { base, identity: `no credentials (${why})`, headers: anonymous };
  }
}
