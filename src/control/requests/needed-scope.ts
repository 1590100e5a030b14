/**
 * The scope that a request to the control plane needs (docs/contract/access.md#view). The table of operations says it.
 * A request that is not in the table needs `admin`, so an operation that is new or missing there stays closed.
 */
import { OPERATIONS } from "../../contracts/http/operations.ts";
import type { KeyScope } from "../../contracts/keys.ts";

/** The operations of the control plane that need less than `admin`. */
const LESS_THAN_ADMIN = OPERATIONS.flatMap(({ method, path, scope }) =>
  path.startsWith("/-/") && scope !== undefined && scope !== "admin"
    ? [{ method: method.toUpperCase(), pattern: patternOf(path), scope }]
    : [],
);

/** `path` is the router's: both read the same text, so neither sees an address that the other does not. */
export function neededScope(method: string, path: string): KeyScope {
  const asked = method === "HEAD" ? "GET" : method;
  const found = LESS_THAN_ADMIN.find((one) => one.method === asked && one.pattern.test(path));
  return found?.scope ?? "admin";
}

/** A parameter is one segment, as in the router. */
function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replace(/\{\w+\}/g, "[^/]+")}$`);
}
