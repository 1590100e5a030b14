/** What goes to the worker beside a request's body, purely: what is not JSON, and what the predictor declares. */
import type { IncomingMessage } from "node:http";
import type { PredictMeta } from "../protocol/messages.ts";

const JSON_TYPE = /^application\/([\w.+-]+\+)?json\b/i;

/** As JSON; undefined for the common case. `wants`: the names among `headers`, `query_params` that `predict` declares. */
export function metaOf(
  wants: readonly string[],
  { headers, url }: Pick<IncomingMessage, "headers" | "url">,
): string | undefined {
  const type = headers["content-type"] ?? "application/octet-stream";
  const isJson = JSON_TYPE.test(type);
  if (isJson && wants.length === 0) return undefined;
  const meta: PredictMeta = {};
  if (!isJson) meta.content_type = type;
  if (wants.includes("headers")) meta.headers = headers;
  if (wants.includes("query_params"))
    meta.query_params = Object.fromEntries(new URL(url!, "http://gateway").searchParams);
  return JSON.stringify(meta);
}
