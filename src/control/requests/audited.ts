/** Records each request that may change something in the audit: also the submissions and stops of jobs. */
import type { Context, MiddlewareHandler } from "hono";
import type { Keys } from "../../access/keys.ts";
import type { Audit } from "../../observe/audit.ts";
import { callerOf } from "./authorization.ts";
import { forwarded, requestId } from "./forwarded.ts";
import { isTrue } from "./parameters.ts";

/** A variable of a request's context: what the request created, for the audit. */
const MADE = "made";
const READING: readonly string[] = ["GET", "HEAD", "OPTIONS"];

/** Tells the audit what a request has created or changed, if its path does not say so. */
export function tellAudit(c: Context, what: string): void {
  c.set(MADE, what);
}

export function auditChanges({ keys, audit }: { keys: Keys; audit: Audit }): MiddlewareHandler {
  return async (c, next) => {
    const { method, path } = c.req;
    if (READING.includes(method) || isTrue(c.req.query("dryRun"))) return next();
    // Read before the action: the key may be revoked by the time of the response, even by this request.
    const caller = callerOf(c, keys);
    await next();
    const { client } = forwarded(c);
    const what = c.get(MADE) as string | undefined;
    audit.record({ method, path, ...caller, client, status: c.res.status, request_id: requestId(c), what });
  };
}
