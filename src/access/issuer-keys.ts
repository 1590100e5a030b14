/**
 * The keys that an issuer publishes (RFC 7517). After a failure they are not fetched for a while, and for longer after
 * each failure. So callers cannot make the server flood the issuer, and no request waits for an issuer that has just
 * failed.
 */
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  type FetchImplementation,
  type JSONWebKeySet,
  type JWTVerifyGetKey,
} from "jose";
import {
  JWKS_BYTES_MAX,
  JWKS_COOLDOWN_FIRST_MS,
  JWKS_COOLDOWN_MAX_MS,
  JWKS_KEPT_MS,
} from "../contracts/limits/authorization.ts";

/** The issuer's keys are not available now. */
export class KeysUnavailable extends Error {
  readonly retryAfterS: number;

  constructor(message: string, waitMs: number) {
    super(message);
    this.name = "KeysUnavailable";
    this.retryAfterS = Math.max(1, Math.ceil(waitMs / 1000));
  }
}

/** `onGone`: called when the issuer no longer publishes a key that it published before. */
export function issuerKeys(url: string, onGone: () => void): JWTVerifyGetKey {
  const cooling = new CoolingFetch((...request) => fetch(...request));
  const published = new PublishedKeys();
  const fetchKeys: FetchImplementation = async (...request) => {
    const response = await cooling.fetch(...request);
    const text = await response.text();
    if (published.replace(JSON.parse(text) as JSONWebKeySet)) onGone();
    return new Response(text);
  };
  return createRemoteJWKSet(new URL(url), { [customFetch]: fetchKeys, cacheMaxAge: JWKS_KEPT_MS });
}

/** The keys that an issuer published last. Pure. */
export class PublishedKeys {
  private current: ReadonlySet<string> = new Set();

  /** True if one of the former keys is no longer among them, or may verify less. */
  replace({ keys }: JSONWebKeySet): boolean {
    const former = this.current;
    this.current = new Set(keys.map(identityOf));
    return [...former].some((key) => !this.current.has(key));
  }
}

/** What verifies a signature, without what issuers may change meanwhile, such as the order of members. */
function identityOf({ kid, kty, alg, use, key_ops, crv, x, y, n, e }: JSONWebKeySet["keys"][number]): string {
  return JSON.stringify([kid, kty, alg, use, key_ops, crv, x, y, n, e]);
}

export class CoolingFetch {
  private readonly ask: FetchImplementation;
  private readonly now: () => number;
  private failures = 0;
  private untilMs = Number.NEGATIVE_INFINITY;
  private why = "";

  constructor(ask: FetchImplementation, now = () => performance.now()) {
    this.ask = ask;
    this.now = now;
  }

  /** Throws `KeysUnavailable`: at once during the pause after a failure. */
  fetch: FetchImplementation = async (...request) => {
    const leftMs = this.untilMs - this.now();
    if (leftMs > 0) throw new KeysUnavailable(this.why, leftMs);
    try {
      const text = await textOf(await this.ask(...request));
      // Throws if it is not a set of keys.
      createLocalJWKSet(JSON.parse(text) as never);
      this.failures = 0;
      return new Response(text);
    } catch (error) {
      throw this.coolDown(error as Error);
    }
  };

  private coolDown(error: Error): KeysUnavailable {
    const waitMs = Math.min(JWKS_COOLDOWN_MAX_MS, JWKS_COOLDOWN_FIRST_MS * 2 ** this.failures++);
    this.untilMs = this.now() + waitMs;
    const { cause } = error;
    this.why = cause instanceof Error ? `${error.message}: ${cause.message}` : error.message;
    return new KeysUnavailable(this.why, waitMs);
  }
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
