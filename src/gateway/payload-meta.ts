/** What goes to the worker beside a request's body, purely: what is not JSON, and what the predictor declares. */
import type { IncomingMessage } from "node:http";
import type { ApiRoute } from "../contracts/routes.ts";
import type { PredictMeta } from "../protocol/messages.ts";

const JSON_TYPE = /^application\/([\w.+-]+\+)?json\b/i;
/** By these a caller shows who it is, to us or to a proxy before us. In lower case. */
export const CREDENTIALS: ReadonlySet<string> = new Set([
  "authorization",
  "proxy-authorization",
  "cookie",
  "x-api-key",
  "x-amz-security-token",
]);
/** The same in a query. */
export const CREDENTIALS_OF_QUERY: ReadonlySet<string> = new Set([
  ...CREDENTIALS,
  ...["api_key", "api-key", "apikey", "access_token", "id_token", "x-amz-credential", "x-amz-signature"],
]);

type Wishes = Pick<ApiRoute, "wants" | "pass_credentials">;

/** As JSON; undefined for the common case. `wants`: the names among `headers`, `query_params` that `predict` declares. */
export function metaOf(
  { wants, pass_credentials: passAll }: Wishes,
  { headers, url }: Pick<IncomingMessage, "headers" | "url">,
): string | undefined {
  const type = headers["content-type"] ?? "application/octet-stream";
  const isJson = JSON_TYPE.test(type);
  if (isJson && wants.length === 0) return undefined;
  const meta: PredictMeta = {};
  if (!isJson) meta.content_type = type;
  if (wants.includes("headers")) meta.headers = passAll ? headers : without(CREDENTIALS, headers);
  if (wants.includes("query_params")) {
    const params = Object.fromEntries(new URL(url!, "http://gateway").searchParams);
    meta.query_params = passAll ? params : without(CREDENTIALS_OF_QUERY, params);
  }
  return JSON.stringify(meta);
}

function without<Value>(names: ReadonlySet<string>, values: Record<string, Value>): Record<string, Value> {
  return Object.fromEntries(Object.entries(values).filter(([name]) => !names.has(name.toLowerCase())));
}
