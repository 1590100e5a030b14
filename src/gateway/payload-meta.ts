/**
 * Builds the metadata that the worker gets with a request's body: a content type that is not JSON, and what the
 * predictor declares. Pure.
 */
import type { IncomingMessage } from "node:http";
import type { ApiRoute } from "../contracts/routes.ts";
import type { PredictMeta } from "../protocol/messages.ts";

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

type Wishes = Pick<ApiRoute, "wants" | "pass_credentials">;
type Request = Pick<IncomingMessage, "headers" | "headersDistinct" | "rawHeaders" | "url">;

/**
 * The metadata as JSON; undefined in the common case. `wants` lists which of `headers` and `query_params` the predictor
 * declares.
 */
export function metaOf(
  { wants, pass_credentials: passAll }: Wishes,
  request: Request,
  requestId: string,
): string | undefined {
  const { headers } = request;
  const type = headers["content-type"] ?? "application/octet-stream";
  const isJson = JSON_TYPE.test(type);
  if (isJson && wants.length === 0) return undefined;
  const meta: PredictMeta = {};
  if (!isJson) meta.content_type = type;
  if (wants.includes("headers")) {
    const lacking = passAll ? NOTHING : CREDENTIALS;
    const all = Object.entries({ ...headers, [REQUEST_ID]: requestId });
    meta.headers = Object.fromEntries(without(lacking, all));
    const repeated = without(lacking, repeatedHeaders(request));
    if (repeated.length > 0) meta.repeated_headers = Object.fromEntries(repeated);
  }
  if (wants.includes("query_params")) {
    const params = [...new URL(request.url!, "http://gateway").searchParams];
    meta.query_params = without(passAll ? NOTHING : CREDENTIALS_OF_QUERY, params);
  }
  return JSON.stringify(meta);
}

/** Headers that came several times, with separate values. `headers` has the values joined. */
function repeatedHeaders(request: Request): [string, string[]][] {
  const { headers, rawHeaders } = request;
  if (rawHeaders.length === 2 * Object.keys(headers).length) return [];
  // Read only here, because Node computes them on access.
  const distinct = Object.entries(request.headersDistinct) as [string, string[]][];
  return distinct.filter(([name, values]) => values.length > 1 && name !== REQUEST_ID);
}

function without<Value>(names: ReadonlySet<string>, values: [string, Value][]): [string, Value][] {
  return names.size === 0 ? values : values.filter(([name]) => !names.has(name.toLowerCase()));
}
