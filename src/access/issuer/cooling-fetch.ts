/**
 * Fetches the keys of an issuer. After a failure they are not fetched for a while, and for longer after each failure.
 * So callers cannot make the server flood the issuer, and no request waits for an issuer that has just failed.
 */
import { createLocalJWKSet, type JSONWebKeySet } from "jose";
import {
  JWKS_BYTES_MAX,
  JWKS_COOLDOWN_FIRST_MS,
  JWKS_COOLDOWN_MAX_MS,
  JWKS_KEYS_MAX,
} from "../../contracts/limits/authorization.ts";

/** The issuer's keys are not available now. */
export class KeysUnavailable extends Error {
  readonly retryAfterS: number;

  constructor(message: string, waitMs: number) {
    super(message);
    this.name = "KeysUnavailable";
    this.retryAfterS = Math.max(1, Math.ceil(waitMs / 1000));
  }
}

export class CoolingFetch {
  private readonly ask: () => Promise<Response>;
  private readonly now: () => number;
  private failures = 0;
  private failedMs = Number.NEGATIVE_INFINITY;
  private untilMs = Number.NEGATIVE_INFINITY;
  private why = "";

  constructor(ask: () => Promise<Response>, now = () => performance.now()) {
    this.ask = ask;
    this.now = now;
  }

  /** Throws `KeysUnavailable`: at once during the pause after a failure. */
  async fetch(): Promise<JSONWebKeySet> {
    const leftMs = this.untilMs - this.now();
    if (leftMs > 0) throw new KeysUnavailable(this.why, leftMs);
    try {
      const keys = JSON.parse(await textOf(await this.ask())) as JSONWebKeySet;
      assertFew(keys);
      // Throws if it is not a set of keys.
      createLocalJWKSet(keys);
      this.failures = 0;
      this.failedMs = Number.NEGATIVE_INFINITY;
      return keys;
    } catch (error) {
      throw this.coolDown(error as Error);
    }
  }

  /** Whether the last fetch failed, and did so within the last `ms` milliseconds. */
  hasFailedWithin(ms: number): boolean {
    return this.now() - this.failedMs < ms;
  }

  private coolDown(error: Error): KeysUnavailable {
    const waitMs = Math.min(JWKS_COOLDOWN_MAX_MS, JWKS_COOLDOWN_FIRST_MS * 2 ** this.failures++);
    this.failedMs = this.now();
    this.untilMs = this.failedMs + waitMs;
    const { cause } = error;
    this.why = cause instanceof Error ? `${error.message}: ${cause.message}` : error.message;
    return new KeysUnavailable(this.why, waitMs);
  }
}

/** Before they are copied, which takes a second for a mebibyte of empty ones. */
function assertFew(set: unknown): void {
  const { keys } = (set ?? {}) as { keys?: unknown };
  if (Array.isArray(keys) && keys.length > JWKS_KEYS_MAX)
    throw new Error(`it has more than ${JWKS_KEYS_MAX} keys`);
}

async function textOf(response: Response): Promise<string> {
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`it responds with ${response.status} instead of 200`);
  }
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += part.length;
    if (bytes > JWKS_BYTES_MAX) throw new Error(`it has more than ${JWKS_BYTES_MAX} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}
