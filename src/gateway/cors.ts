/**
 * Cross-origin requests to predictions (the Fetch standard's CORS protocol). Credentials are never allowed, so that `*` is
 * no more than what anybody could send who has the key.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { type HostRules, isLoopbackOrigin } from "../access/host-check.ts";
import { ServiceError } from "../contracts/errors.ts";
import type { AddressRoute } from "../contracts/routes.ts";

const METHODS = "GET, HEAD, POST, OPTIONS";
const EXPOSED =
  "X-Request-Id, Retry-After, X-Quern-Api, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset";
/** What browsers keep a preflight for at most (Chromium: two hours). */
const MAX_AGE_S = 7200;

/** Which origins' pages may make predictions and read them. */
export type Origins = readonly string[] | "loopback";

const ANY: Origins = ["*"];

/**
 * Where `networking.cors_origins` says nothing: any, as at the contract's gateway. But a server on loopback that asks for
 * no key is there for its own machine, and any page that is opened there can reach it: then those of the machine only.
 */
export function originsOf({ cors_origins, needs_key }: AddressRoute, rules: HostRules): Origins {
  return cors_origins ?? (rules.isLoopbackListener && !needs_key ? "loopback" : ANY);
}

function isAmong(origin: string, origins: Origins): boolean {
  return origins === "loopback" ? isLoopbackOrigin(origin) : origins.includes(origin);
}

/** Adds what lets a page of an allowed origin read the answer. */
export function allowOrigin(origin: string, response: ServerResponse, origins: Origins): boolean {
  const isAny = origins.includes("*");
  if (!isAny) response.setHeader("vary", "Origin");
  if (!isAny && !isAmong(origin, origins)) return false;
  response.setHeader("access-control-allow-origin", isAny ? "*" : origin);
  response.setHeader("access-control-expose-headers", EXPOSED);
  return true;
}

/** A refusal that says the same to everybody may be read by every page: so a page's own programmer sees why. */
export function allowAnyOrigin({ headers }: IncomingMessage, response: ServerResponse): void {
  if (headers.origin !== undefined) allowOrigin(headers.origin, response, ANY);
}

/**
 * OPTIONS: 204, a preflight's answer where it is one. Needs no key: browsers send none with it. `isListed`: the
 * configuration names the origin, so that its pages may come from a public network too.
 */
export function answerOptions(
  request: IncomingMessage,
  response: ServerResponse,
  { isAllowed, isListed }: { isAllowed: boolean; isListed: boolean },
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
  response.writeHead(204);
  response.end();
}

/** `apiName`: where it could be allowed. */
export function foreignOrigin(origin: string, apiName: string | undefined): ServiceError {
  const cure =
    apiName === undefined ? "" : `; list its origin in networking.cors_origins of ${apiName} to allow it`;
  return new ServiceError(
    "origin_not_allowed",
    `requests from the web page at ${origin} are not taken${cure}`,
  );
}
