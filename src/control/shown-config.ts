/** Configurations as whoever asks may see them: an administrator as they are, everybody else without their secrets. */
import type { Context } from "hono";
import type { Keys } from "../access/keys.ts";
import { parseExact, stringifyExact } from "../base/json-text.ts";
import type { SecretNames } from "../contracts/secrets.ts";
import { isAdmin } from "./http.ts";

/** Configurations of jobs and of APIs that were looked at last, so that each look at a job does not read them anew. */
const KEPT = 200;

export class ShownConfig {
  private readonly keys: Keys;
  private readonly names: SecretNames;
  /** By job; undefined where nothing is hidden. */
  private readonly ofJobs = new Map<string, string | undefined>();
  /** By the id of an API's version, which never changes either: without its secrets. */
  private readonly ofApis = new Map<string, unknown>();

  constructor(keys: Keys, names: SecretNames) {
    this.keys = keys;
    this.names = names;
  }

  /** Of an API's version. */
  spec(c: Context, apiId: string, spec: unknown): unknown {
    // One that is gone has nothing to hide, and may be deployed again under its id.
    if (isAdmin(c, this.keys) || Object.keys(spec as object).length === 0) return spec;
    if (!this.ofApis.has(apiId)) keep(this.ofApis, apiId, this.names.hideInSpec(spec));
    return this.ofApis.get(apiId);
  }

  /** Of a job, from the text that was sent; a job's configuration never changes. */
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
