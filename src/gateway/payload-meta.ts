/**
 * Builds the metadata that the worker gets with a request's body: a content type that is not JSON, and what the
 * predictor declares. Pure.
 */
import type { IncomingMessage } from "node:http";
import { withoutSession } from "../access/sessions.ts";
import type { PredictMeta } from "../protocol/messages.ts";
import type { MetaSource, Wishes } from "./answers/prediction-request.ts";

const JSON_TYPE = /^application\/([\w.+-]+\+)?json\b/i;
/** Predictors that take headers have the id of the response, also if the caller gave none. */
const REQUEST_ID = "x-request-id";
const NOTHING: ReadonlySet<string> = new Set();
/** Headers with which a caller authenticates, to us or to a proxy before us. In lower case. */
export const CREDENTIALS: ReadonlySet<string> = new Set([
  "authorization",
  "proxy-authorization",
  "cookie",
  "x-api-key",
  "x-amz-security-token",
]);
/** The same for query parameters. */
export const CREDENTIALS_OF_QUERY: ReadonlySet<string> = new Set([
  ...CREDENTIALS,
  ...["api_key", "api-key", "apikey", "access_token", "id_token", "x-amz-credential", "x-amz-signature"],
]);

type Request = Pick<IncomingMessage, "headers" | "rawHeaders" | "url">;
type Fields = Pick<Request, "headers" | "rawHeaders">;

/** What a header takes beside its text: two strings, and their places in a list and an object. */
const HEADER_BYTES = 128;

/** The head of a request that waits or runs. */
export class RequestHead implements MetaSource {
  private readonly url: string;
  private readonly requestId: string;
  private readonly fields: Fields;

  constructor({ headers, rawHeaders, url }: Request, requestId: string) {
    this.url = url!;
    this.requestId = requestId;
    this.fields = { headers, rawHeaders };
  }

  /**
   * The metadata as JSON; undefined in the common case. `wants` lists which of `headers` and `query_params` the
   * predictor declares.
   */
  metaFor({ wants, pass_credentials: passAll }: Wishes): string | undefined {
    const type = this.fields.headers["content-type"] ?? "application/octet-stream";
    const isJson = type === "application/json" || JSON_TYPE.test(type);
    if (isJson && wants.length === 0) return undefined;
    const meta: PredictMeta = {};
    if (!isJson) meta.content_type = type;
    if (wants.includes("headers")) this.addHeaders(meta, passAll ? NOTHING : CREDENTIALS);
    if (wants.includes("query_params")) {
      const params = [...new URLSearchParams(queryOf(this.url))];
      meta.query_params = without(passAll ? NOTHING : CREDENTIALS_OF_QUERY, params);
    }
    return JSON.stringify(meta);
  }

  private addHeaders(meta: PredictMeta, lacking: ReadonlySet<string>): void {
    const all = Object.entries({ ...this.fields.headers, [REQUEST_ID]: this.requestId });
    meta.headers = Object.fromEntries(without(lacking, all).flatMap(withoutSessions));
    const repeated = without(lacking, repeatedHeaders(this.fields));
    if (repeated.length > 0) meta.repeated_headers = Object.fromEntries(repeated);
  }
}

/** What the head of a request takes in memory. */
export function headBytes({ url, rawHeaders }: Pick<Request, "url" | "rawHeaders">): number {
  let bytes = url!.length + (rawHeaders.length / 2) * HEADER_BYTES;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}

/** Without a fragment, which is no part of a request target (RFC 9112, section 3.2); a caller may send one. */
function queryOf(url: string): string {
  const at = url.indexOf("?");
  return at === -1 ? "" : url.slice(at + 1).split("#", 1)[0]!;
}

/** Headers that came several times, with separate values. `headers` has the values joined. */
function repeatedHeaders({ headers, rawHeaders }: Fields): [string, string[]][] {
  if (rawHeaders.length === 2 * Object.keys(headers).length) return [];
  const distinct = new Map<string, string[]>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase();
    const value = name === "cookie" ? withoutSession(rawHeaders[at + 1]!) : rawHeaders[at + 1]!;
    if (value === undefined) continue;
    const values = distinct.get(name);
    if (values === undefined) distinct.set(name, [value]);
    else values.push(value);
  }
  return [...distinct].filter(([name, values]) => values.length > 1 && name !== REQUEST_ID);
}

/** A session of a browser opens the whole server, so not even `pass_credentials` passes it on. */
function withoutSessions<Value>([name, value]: [string, Value]): [string, Value | string][] {
  if (name !== "cookie" || typeof value !== "string") return [[name, value]];
  const others = withoutSession(value);
  return others === undefined ? [] : [[name, others]];
}

function without<Value>(names: ReadonlySet<string>, values: [string, Value][]): [string, Value][] {
  return names.size === 0 ? values : values.filter(([name]) => !names.has(name.toLowerCase()));
}
