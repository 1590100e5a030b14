/** Configurations as a caller may see them: administrators see all of it, everybody else sees it without secrets. */
import type { Context } from "hono";
import type { Keys } from "../../access/keys.ts";
import { parseExact, stringifyExact } from "../../base/json/exact.ts";
import type { SecretNames } from "../../contracts/secrets.ts";
import { isAdmin } from "../requests/authorization.ts";

/** The size of each cache of configurations. Without it, each poll of a job would parse its configuration again. */
const KEPT = 200;

export class ShownConfig {
  private readonly keys: Keys;
  private readonly names: SecretNames;
  /** By job; undefined if nothing is hidden. */
  private readonly ofJobs = new Map<string, string | undefined>();
  /** Without secrets, by the id of an API's version, whose configuration never changes. */
  private readonly ofApis = new Map<string, unknown>();

  constructor(keys: Keys, names: SecretNames) {
    this.keys = keys;
    this.names = names;
  }

  /** Whether the caller may read the names of all APIs, and the ids of their jobs. */
  mayNameOthers(c: Context): boolean {
    return isAdmin(c, this.keys);
  }

  /** The configuration of an API's version. */
  spec(c: Context, apiId: string, spec: unknown): unknown {
    // A removed version has nothing to hide. It is not cached, because it may be deployed again with the same id.
    if (isAdmin(c, this.keys) || Object.keys(spec as object).length === 0) return spec;
    if (!this.ofApis.has(apiId)) keep(this.ofApis, apiId, this.names.hideInSpec(spec));
    return this.ofApis.get(apiId);
  }

  /** The configuration of a job, from the text that was sent. It never changes. */
  ofJob(c: Context, jobId: string, sent: string): string {
    if (sent === "{}" || isAdmin(c, this.keys)) return sent;
    if (this.ofJobs.has(jobId)) return this.ofJobs.get(jobId) ?? sent;
    const exact = parseExact(sent);
    const shown = stringifyExact(this.names.hide(exact));
    const hidden = shown === stringifyExact(exact) ? undefined : shown;
    keep(this.ofJobs, jobId, hidden);
    return hidden ?? sent;
  }
}

function keep<Value>(kept: Map<string, Value>, id: string, value: Value): void {
  const [oldest] = kept.keys();
  if (kept.size >= KEPT) kept.delete(oldest!);
  kept.set(id, value);
}
