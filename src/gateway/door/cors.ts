/**
 * Cross-origin requests to predictions (the Fetch standard's CORS protocol). Credentials are never allowed, so `*`
 * permits only what anyone with the key could send anyway.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { type HostRules, isAllowedOrigin, isLoopbackOrigin } from "../../access/host-check.ts";
import { ServiceError } from "../../contracts/errors.ts";
import type { AddressRoute } from "../../contracts/routes.ts";
import type { ClientAddress } from "./client-address.ts";

const METHODS = "GET, HEAD, POST, OPTIONS";
const EXPOSED =
  "X-Request-Id, Retry-After, X-Quern-Api, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset";
/** How long browsers keep the response to a preflight at most (Chromium: two hours). */
const MAX_AGE_S = 7200;

/** Which origins' pages may make predictions and read them. */
export type Origins = readonly string[] | "loopback";

const ANY: Origins = ["*"];

/**
 * The allowed origins. Without `networking.cors_origins` any origin is allowed (docs/decisions/0012-real-time.md). The
 * exception is a server on loopback without keys: it serves its own machine, but any page opened there can reach it. So
 * it allows only origins of that machine.
 */
export function originsOf({ cors_origins, needs_key }: AddressRoute, rules: HostRules): Origins {
  return cors_origins ?? (rules.isLoopbackListener && !needs_key ? "loopback" : ANY);
}

function isAmong(origin: string, origins: Origins): boolean {
  return origins === "loopback" ? isLoopbackOrigin(origin) : origins.includes(origin);
}

/** Adds the headers that let a page of an allowed origin read the response. */
export function allowOrigin(origin: string, response: ServerResponse, origins: Origins): boolean {
  const isAny = origins.includes("*");
  if (!isAny) response.setHeader("vary", "Origin");
  if (!isAny && !isAmong(origin, origins)) return false;
  response.setHeader("access-control-allow-origin", isAny ? "*" : origin);
  response.setHeader("access-control-expose-headers", EXPOSED);
  return true;
}

/**
 * A refusal that is the same for everybody may be read by every page, so that the page's programmer sees the reason.
 */
export function allowAnyOrigin({ headers }: IncomingMessage, response: ServerResponse): void {
  if (headers.origin !== undefined) allowOrigin(headers.origin, response, ANY);
}

/**
 * Responds to OPTIONS with 204, and with the headers for a preflight if it is one. Needs no key, because browsers send
 * none with a preflight. `isListed`: the configuration lists origins, so their pages may also be on a public network.
 */
export function answerOptions(
  request: IncomingMessage,
  response: ServerResponse,
  { isAllowed, isListed, requestId }: { isAllowed: boolean; isListed: boolean; requestId: string },
): void {
  const wanted = request.headers["access-control-request-headers"];
  const isPreflight = isAllowed && request.headers["access-control-request-method"] !== undefined;
  response.setHeader("allow", METHODS);
  if (isPreflight) {
    response.setHeader("access-control-allow-methods", METHODS);
    response.setHeader("access-control-max-age", MAX_AGE_S);
    if (isListed && request.headers["access-control-request-private-network"] !== undefined)
      response.setHeader("access-control-allow-private-network", "true");
    if (wanted !== undefined) response.setHeader("access-control-allow-headers", wanted);
  }
  response.writeHead(204, { "x-request-id": requestId });
  response.end();
}

/** Whether a page of another origin sent the request, to change something or to start work. */
export function isForeign(
  request: IncomingMessage,
  rules: HostRules,
  clients: Pick<ClientAddress, "host">,
): boolean {
  const { method, headers } = request;
  if (headers.origin === undefined || method === "GET" || method === "HEAD" || method === "OPTIONS")
    return false;
  return !isAllowedOrigin(headers.origin, [headers.host, clients.host(request)], rules);
}

/** `apiName`: the API whose configuration could allow the origin. */
export function foreignOrigin(origin: string, apiName: string | undefined): ServiceError {
  const cure =
    apiName === undefined ? "" : `; list its origin in networking.cors_origins of ${apiName} to allow it`;
  return new ServiceError(
    "origin_not_allowed",
    `requests from the web page at ${origin} are not allowed${cure}`,
  );
}
