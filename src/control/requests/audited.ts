/** What a request tells the audit of changes (control/audit.ts). */
import type { Context } from "hono";

/** A variable of a request's context: what the request created, for the audit. */
const MADE = "made";

/** Tells the audit what a request has created or changed, if its path does not say so. */
export function tellAudit(c: Context, what: string): void {
  c.set(MADE, what);
}

export function audited(c: Context): string | undefined {
  return c.get(MADE) as string | undefined;
}
