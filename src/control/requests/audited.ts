/** Records each request that may change something in the audit: also the submissions and stops of jobs. */
import type { Context, MiddlewareHandler } from "hono";
import type { Keys } from "../../access/keys.ts";
import { CLIENT_LEFT } from "../../observe/access-log.ts";
import type { Audit } from "../../observe/audit.ts";
import { callerOf } from "./authorization.ts";
import { hasLeft } from "./connection.ts";
import { forwarded, requestId } from "./forwarded.ts";

/** Variables of a request's context: what the request created, for the audit, that it only looked, and of whom it is. */
const MADE = "made";
const LOOKED = "looked";
const CALLER = "caller";
const READING: readonly string[] = ["GET", "HEAD", "OPTIONS"];

/** Tells the audit what a request has created or changed, if its path does not say so. */
export function tellAudit(c: Context, what: string): void {
  c.set(MADE, what);
}

/** Tells the audit whose request it is, if its headers do not say so: a sign-in has the key in its body. */
export function tellAuditCaller(c: Context, caller: { by: string; by_name?: string; scope: string }): void {
  c.set(CALLER, caller);
}

/** Tells the audit that a request changes nothing, whatever its method. Only its handler knows. */
export function onlyLooks(c: Context): void {
  c.set(LOOKED, true);
}

export function auditChanges({ keys, audit }: { keys: Keys; audit: Audit }): MiddlewareHandler {
  return async (c, next) => {
    const { method, path } = c.req;
    if (READING.includes(method)) return next();
    // Read before the action: the key may be revoked by the time of the response, even by this request.
    const asked = callerOf(c, keys);
    await next();
    if (c.get(LOOKED) === true) return;
    const { client } = forwarded(c);
    const what = c.get(MADE) as string | undefined;
    const caller = (c.get(CALLER) as typeof asked | undefined) ?? asked;
    // A body that ended because its client left is no fault of the server.
    const status = c.res.status === 500 && hasLeft(c) ? CLIENT_LEFT : c.res.status;
    audit.record({ method, path, ...caller, client, status, request_id: requestId(c), what });
  };
}
