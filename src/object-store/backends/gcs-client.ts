/**
 * Sends requests to Google Cloud Storage's JSON API. Google's auth library, an optional peer dependency, finds the
 * credentials. Google's storage client is not used: it waits for ever if a connection breaks off in the middle of a
 * response.
 */
import type { IncomingMessage } from "node:http";
import { ValueCount } from "../../base/json/measure.ts";
import { ServiceError } from "../../contracts/errors.ts";
import {
  STORE_ERROR_BYTES_MAX,
  STORE_JSON_PAGE_BYTES_MAX,
  STORE_PAGE_VALUES_MAX,
  STORE_SILENCE_MS,
} from "../../contracts/limits/stores.ts";
import { type OutgoingRequest, request } from "../http-request.ts";
import { LISTING_SLICES } from "../listing/listing-slices.ts";
import { StorePages } from "../listing/store-pages.ts";
import { SentCredentials } from "../sent-credentials.ts";
import { storeError } from "../store-errors.ts";
import { textOfStore } from "../text-of-store.ts";

const GOOGLE = "https://storage.googleapis.com";
const SCOPE = "https://www.googleapis.com/auth/devstorage.read_write";
const CREDENTIALS = "GOOGLE_APPLICATION_CREDENTIALS, or the machine's service account";
const CURES = {
  read: `give the server credentials that may list and read it (${CREDENTIALS})`,
  write: `give the server credentials that may write it: the role Storage Object User (${CREDENTIALS})`,
};

/** What is counted between two looks at the clock: some milliseconds, before the code is compiled. */
const COUNTED_BYTES = 256 * 1024;

export interface GcsOptions {
  /** STORAGE_EMULATOR_HOST: the operator's own store, used without credentials. */
  emulator: string | undefined;
}

interface GcsAccess {
  /** The store's scheme and host. */
  origin: string;
  identity: string;
  headers: () => Promise<Record<string, string>>;
}

export interface GcsRequest extends Partial<OutgoingRequest> {
  /** After the origin and a slash. */
  address: string;
  /** The path that errors show. */
  path: string;
  access: "read" | "write";
}

/** A response whose body was not read yet. */
interface GcsAnswer {
  answer: IncomingMessage;
  /** The error of a response that refuses the request. */
  refusal: () => Promise<Error>;
  /** Reads the body, which says nothing. */
  end: () => Promise<void>;
  /** Reads the body as a JSON object, and resolves to what `read` takes from it; `read` may throw. */
  json: <T>(read: (object: object) => T | Promise<T>) => Promise<T>;
}

export class GcsClient {
  private readonly options: GcsOptions;
  private readonly pages = new StorePages(STORE_JSON_PAGE_BYTES_MAX);
  private opened: Promise<GcsAccess> | undefined;

  constructor(options: GcsOptions) {
    this.options = options;
  }

  /**
   * Requests a JSON object and resolves to what `read` takes from it; `read` may throw. `missing` makes the error for a
   * 404.
   */
  async ask<T>(
    asked: GcsRequest,
    read: (answer: object) => T | Promise<T>,
    missing: (cause: Error) => Error,
  ): Promise<T> {
    const { answer, refusal, json } = await this.send(asked);
    if (answer.statusCode === 200) return json(read);
    const error = await refusal();
    throw answer.statusCode === 404 ? missing(error) : error;
  }

  async send({ address, path, access, headers, signal, ...rest }: GcsRequest): Promise<GcsAnswer> {
    this.opened ??= openGcs(this.options);
    const { origin, identity, headers: credentials } = await this.opened;
    const all = { ...(await credentials()), ...headers };
    const url = `${origin}/${address}`;
    const sent = new SentCredentials(all, url);
    const asError = (status: number | undefined, error: Error) =>
      storeError(sent.hideInError(error), { path, access, status, identity, cure: CURES[access] });
    const outgoing = { ...rest, headers: all, signal: signal ?? AbortSignal.timeout(STORE_SILENCE_MS) };
    const answer = await request(url, outgoing).catch((error: Error) => {
      throw asError(undefined, error);
    });
    const lost = (error: Error) => {
      throw asError(undefined, error);
    };
    const errorText = () => textOfStore(answer, STORE_ERROR_BYTES_MAX).catch(lost);
    return {
      answer,
      end: async () => {
        await errorText();
      },
      refusal: async () => asError(answer.statusCode, new Error(messageOf(sent.hideIn(await errorText())))),
      json: (read) => this.pages.read(answer, async (text) => read(await objectOf(text))).catch(lost),
    };
  }
}

/**
 * Throws if the body is not a JSON object, which must not count as an empty listing. Throws also if it has too many
 * values: parsing them would block the event loop.
 */
async function objectOf(body: string): Promise<object> {
  const somethingElse = new Error(`it answered ${body.slice(0, 100)}`);
  if (await hasTooManyValues(Buffer.from(body))) throw somethingElse;
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    throw somethingElse;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw somethingElse;
  return value;
}

async function hasTooManyValues(body: Buffer): Promise<boolean> {
  const count = new ValueCount(STORE_PAGE_VALUES_MAX);
  for (let at = 0; at < body.length; at += COUNTED_BYTES) {
    if (count.isOverIn(body.subarray(at, at + COUNTED_BYTES))) return true;
    if (LISTING_SLICES.isOver) await LISTING_SLICES.rest();
  }
  return false;
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
    const origin = host.includes("://") ? host : `http://${host}`;
    return { origin, identity: "no credentials (STORAGE_EMULATOR_HOST)", headers: anonymous };
  }
  const { GoogleAuth } = await import("google-auth-library").catch((error: Error) => {
    const message =
      "gs:// needs Google's auth library, installed next to the server: npm install google-auth-library";
    throw new ServiceError("not_supported_yet", message, { cause: error });
  });
  try {
    const client = await new GoogleAuth({ scopes: SCOPE }).getClient();
    const headers = async () => Object.fromEntries(new Headers(await client.getRequestHeaders(GOOGLE)));
    return { origin: GOOGLE, identity: "the server's Google credentials", headers };
  } catch (error) {
    const [why] = (error as Error).message.split("\n");
    return { origin: GOOGLE, identity: `no credentials (${why})`, headers: anonymous };
  }
}
