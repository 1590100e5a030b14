/** Errors about a request's host or address, and where its path ends. */
import { ServiceError } from "../contracts/errors.ts";
import { type ActiveServer, activeServerWords } from "../contracts/messages.ts";

/** The position at which a URL's path ends: before its query. */
export function pathEnd(url: string): number {
  const query = url.indexOf("?");
  return query < 0 ? url.length : query;
}

export function misdirected(host: string | undefined): ServiceError {
  return new ServiceError(
    "misdirected_request",
    `the Host header ${JSON.stringify(host ?? "")} does not name this server; use localhost, or start the server with --public-url`,
  );
}

export function notCanonical(path: string, fault: string): ServiceError {
  return new ServiceError("invalid_request", `the path ${JSON.stringify(path)} is not accepted: ${fault}`);
}

export function unknownAddress(path: string): ServiceError {
  return new ServiceError(
    "route_not_found",
    `${path} is not an address of this server; \`quern get\` shows what is deployed`,
  );
}

/**
 * Another server has the database (docs/decisions/0037-standby.md). Whoever reaches this one may learn the name of the
 * other one's machine, and no more.
 */
export function standsBy(active: ActiveServer): ServiceError {
  return new ServiceError(
    "standby",
    `this server is a standby: ${activeServerWords(active)} has the database; send requests there, or to the load balancer, which asks /-/readyz`,
    { retryAfterS: 1 },
  );
}
