/**
 * Cross-origin requests to predictions (the Fetch standard's CORS protocol). Credentials are never allowed, so that `*` is
 * no more than what anybody could send who has the key.
 */
import type { IncomingMessage, ServerResponse } from "node:http";

const METHODS = "GET, HEAD, POST, OPTIONS";
const EXPOSED =
  "X-Request-Id, Retry-After, X-Quern-Api, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset";
/** What browsers keep a preflight for at most (Chromium: two hours). */
const MAX_AGE_S = 7200;

/** Adds what lets a page of an allowed origin read the answer. */
export function allowOrigin(
  request: IncomingMessage,
  response: ServerResponse,
  origins: readonly string[],
): boolean {
  const { origin } = request.headers;
  if (origin === undefined) return false;
  const isAny = origins.includes("*");
  if (!isAny) response.setHeader("vary", "Origin");
  if (!isAny && !origins.includes(origin)) return false;
  response.setHeader("access-control-allow-origin", isAny ? "*" : origin);
  response.setHeader("access-control-expose-headers", EXPOSED);
  return true;
}

/** OPTIONS: 204, a preflight's answer where it is one. Needs no key: browsers send none with it. */
export function answerOptions(request: IncomingMessage, response: ServerResponse, isAllowed: boolean): void {
  const wanted = request.headers["access-control-request-headers"];
  const isPreflight = isAllowed && request.headers["access-control-request-method"] !== undefined;
  response.setHeader("allow", METHODS);
  if (isPreflight) {
    response.setHeader("access-control-allow-methods", METHODS);
    response.setHeader("access-control-max-age", MAX_AGE_S);
    if (wanted !== undefined) response.setHeader("access-control-allow-headers", wanted);
  }
  response.writeHead(204);
  response.end();
}
