/**
 * `gs://`: Google Cloud Storage by its JSON API; Google's auth library, an optional peer, finds the credentials. (Its storage
 * client waits for ever when a connection breaks off in the middle of an answer.)
 */
import { ServiceError } from "../contracts/errors.ts";
import {
  PARALLEL_LISTINGS,
  STORE_ERROR_BYTES_MAX,
  STORE_PAGE_BYTES_MAX,
  STORE_SILENCE_MS,
} from "../contracts/limits.ts";
import { get } from "./http-get.ts";
import {
  type ListedObject,
  type ListOptions,
  ObjectChanged,
  ObjectMissing,
  type ObjectStore,
  type OpenObject,
} from "./object-store.ts";
import { RangedObject } from "./ranged-object.ts";
import { storeError } from "./store-errors.ts";
import { bucketAndKey } from "./store-path.ts";
import { textOfStore } from "./text-of-store.ts";

const GOOGLE = "https://storage.googleapis.com";
const SCOPE = "https://www.googleapis.com/auth/devstorage.read_only";
const PAGE = "1000";

export interface GcsOptions {
  /** STORAGE_EMULATOR_HOST: a store of one's own, which is asked without credentials. */
  emulator: string | undefined;
}

interface GcsAccess {
  /** Address of the bucket collection. */
  base: string;
  identity: string;
  headers: () => Promise<Record<string, string>>;
}

interface Listing {
  items?: { name: string; size: string }[];
  nextPageToken?: string;
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

  async *list(prefix: string, { after }: ListOptions): AsyncGenerator<ListedObject[]> {
    const { bucket, key } = bucketAndKey(prefix);
    const last = after === undefined ? undefined : bucketAndKey(after).key;
    const query = new URLSearchParams({
      prefix: key,
      maxResults: PAGE,
      fields: "items(name,size),nextPageToken",
      ...(last === undefined ? {} : { startOffset: last }),
    });
    for (;;) {
      const { items = [], nextPageToken } = await this.ask<Listing>(
        `${bucket}/o?${query}`,
        prefix,
        (cause) => {
          const message = `there is no bucket for ${prefix}: check its name`;
          return new ServiceError("bucket_not_found", message, { cause });
        },
      );
      // `startOffset` is inclusive.
      const behind = items.filter(({ name }) => name !== last);
      if (behind.length > 0)
        yield behind.map(({ name, size }) => ({ path: `gs://${bucket}/${name}`, bytes: Number(size) }));
      if (nextPageToken === undefined) return;
      query.set("pageToken", nextPageToken);
    }
  }

  /** The etag is the generation: the one that was enqueued is there, or is gone. */
  async open(path: string, etag?: string): Promise<OpenObject> {
    const { bucket, key } = bucketAndKey(path);
    const object = `${bucket}/o/${encodeURIComponent(key)}`;
    const source =
      etag === undefined ? await this.generation(object, path) : { etag, bytes: Number.POSITIVE_INFINITY };
    return new RangedObject({
      path,
      ...source,
      request: async (start, end, signal) => {
        // Bytes as they are stored: without the second one the service decompresses what was uploaded as gzip.
        const headers = { range: `bytes=${start}-${end - 1}`, "accept-encoding": "gzip" };
        const answer = await this.get(`${object}?alt=media&generation=${source.etag}`, path, headers, signal);
        if (answer.statusCode! < 300) return answer;
        if (answer.statusCode === 416) return undefined;
        if (answer.statusCode === 404) throw new ObjectChanged(path);
        throw await this.refusal(answer.statusCode!, path, await textOfStore(answer, STORE_ERROR_BYTES_MAX));
      },
    });
  }

  private async generation(object: string, path: string): Promise<{ etag: string; bytes: number }> {
    const { generation, size } = await this.ask<{ generation: string; size: string }>(
      `${object}?fields=generation,size`,
      path,
      (cause) => new ObjectMissing(path, cause),
    );
    return { etag: generation, bytes: Number(size) };
  }

  /** A JSON answer; `missing` says what a 404 means. */
  private async ask<T>(address: string, path: string, missing: (cause: Error) => Error): Promise<T> {
    const answer = await this.get(address, path, {}, AbortSignal.timeout(STORE_SILENCE_MS));
    const broken = (error: Error): never => {
      throw storeError(error, { path, status: undefined, identity: "", cure: "" });
    };
    const body = await textOfStore(answer, STORE_PAGE_BYTES_MAX).catch(broken);
    if (answer.statusCode === 200)
      return objectOf<T>(body) ?? broken(new Error(`it answered ${body.slice(0, 100)}`));
    const refusal = await this.refusal(answer.statusCode!, path, body);
    throw answer.statusCode === 404 ? missing(refusal) : refusal;
  }

  private async get(address: string, path: string, headers: Record<string, string>, signal: AbortSignal) {
    const access = await this.access();
    const all = { ...(await access.headers()), ...headers };
    return get(`${access.base}/${address}`, all, signal).catch((error: Error) => {
      throw storeError(error, { path, status: undefined, identity: access.identity, cure: "" });
    });
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

/** What is no JSON object must not pass for an empty listing. */
function objectOf<T>(body: string): T | undefined {
  try {
    const value = JSON.parse(body) as T;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function messageOf(body: string): string {
  try {
    return (JSON.parse(body) as { error: { message: string } }).error.message;
  } catch {
    return body.slice(0, 200);
  }
}

/** The usual chain (GOOGLE_APPLICATION_CREDENTIALS, gcloud, the machine's account); where there is none, anonymous. */
async function openGcs({ emulator }: GcsOptions): Promise<GcsAccess> {
  const anonymous = async () => ({});
  if (emulator !== undefined) {
    const host = emulator.replace(/\/(storage\/v1\/?)?$/, "");
    const base = `${host.includes("://") ? host : `http://${host}`}/storage/v1/b`;
    return { base, identity: "no credentials (STORAGE_EMULATOR_HOST)", headers: anonymous };
  }
  const base = `${GOOGLE}/storage/v1/b`;
  const { GoogleAuth } = await import("google-auth-library").catch((error: Error) => {
    const message = "gs:// needs Google's auth library beside the server: npm install google-auth-library";
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
