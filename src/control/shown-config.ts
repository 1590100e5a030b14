/** Configurations as whoever asks may see them: an administrator as they are, everybody else without their secrets. */
import type { Context } from "hono";
import type { Keys } from "../access/keys.ts";
import { parseExact, stringifyExact } from "../base/json-text.ts";
import type { SecretNames } from "../contracts/secrets.ts";
import { isAdmin } from "./http.ts";

/** Configurations of jobs that were looked at last, so that each look at a job does not read its configuration anew. */
const KEPT = 200;

export class ShownConfig {
  private readonly keys: Keys;
  private readonly names: SecretNames;
  /** By job; undefined where nothing is hidden. */
  private readonly ofJobs = new Map<string, string | undefined>();

  constructor(keys: Keys, names: SecretNames) {
    this.keys = keys;
    this.names = names;
  }

  /** Of an API. */
  spec(c: Context, spec: unknown): unknown {
    return isAdmin(c, this.keys) ? spec : this.names.hideInSpec(spec);
  }

  /** Of a job, from the text that was sent; a job's configuration never changes. */
  ofJob(c: Context, jobId: string, sent: string): string {
    if (sent === "{}" || isAdmin(c, this.keys)) return sent;
    if (this.ofJobs.has(jobId)) return this.ofJobs.get(jobId) ?? sent;
    const exact = parseExact(sent);
    const shown = stringifyExact(this.names.hide(exact));
    const hidden = shown === stringifyExact(exact) ? undefined : shown;
    const [oldest] = this.ofJobs.keys();
    if (this.ofJobs.size >= KEPT) this.ofJobs.delete(oldest!);
    this.ofJobs.set(jobId, hidden);
    return hidden ?? sent;
  }
}
