/**
 * The keys that an issuer publishes (RFC 7517). They are fetched when a token needs them. While the issuer cannot be
 * reached, the keys that it published last go on to verify, so that its outage does not become one of the server. They
 * do so for a limited time, because the issuer may have withdrawn one of them meanwhile.
 */
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import { processLog } from "../../base/log.ts";
import {
  JWKS_ASKED_AGAIN_MS,
  JWKS_FAILED_LATELY_MS,
  JWKS_KEPT_MS,
  JWKS_TIMEOUT_MS,
  JWKS_USABLE_MS,
} from "../../contracts/limits/authorization.ts";
import { CoolingFetch, type KeysUnavailable } from "./cooling-fetch.ts";

export class IssuerKeys {
  private readonly url: string;
  private readonly onGone: () => void;
  private readonly cooling: CoolingFetch;
  private readonly published = new PublishedKeys();
  private local: JWTVerifyGetKey = createLocalJWKSet({ keys: [] });
  private fetchedMs = Number.NEGATIVE_INFINITY;
  private pending: Promise<void> | undefined;
  private awayMs = 0;
  /** Why the last fetch failed; undefined if it did not. */
  away: KeysUnavailable | undefined;

  /** `onGone`: called when the issuer no longer publishes a key that it published before. */
  constructor(url: string, onGone: () => void) {
    this.url = url;
    this.onGone = onGone;
    this.cooling = new CoolingFetch(() => request(url));
  }

  /** When the keys that were fetched last stop to verify, in monotonic time. */
  get usableUntilMs(): number {
    return this.fetchedMs + JWKS_USABLE_MS;
  }

  /** Throws `KeysUnavailable` for a key that is not among those published last, as long as the issuer is away. */
  keyOf: JWTVerifyGetKey = async (header, token) => {
    await this.freshen();
    try {
      return await this.local(header, token);
    } catch (error) {
      // Two keys of one id come from an issuer that is just changing them.
      const mayChange = [errors.JWKSNoMatchingKey, errors.JWKSMultipleMatchingKeys];
      if (!mayChange.some((known) => error instanceof known) || !(await this.askAgain())) throw error;
    }
    return this.local(header, token);
  };

  /** False if the keys are so new that there cannot be newer ones. Throws `KeysUnavailable`. */
  async askAgain(): Promise<boolean> {
    if (this.ageMs() < JWKS_ASKED_AGAIN_MS) return false;
    await this.fetch();
    return true;
  }

  /** No token waits for an issuer that has failed lately, as long as there are keys to go on with. */
  private async freshen(): Promise<void> {
    if (this.ageMs() < JWKS_KEPT_MS) return;
    const failure = this.fetch().then(
      () => undefined,
      (error: unknown) => error,
    );
    if (this.ageMs() < JWKS_USABLE_MS && this.cooling.hasFailedWithin(JWKS_FAILED_LATELY_MS)) return;
    const error = await failure;
    if (error !== undefined && this.ageMs() >= JWKS_USABLE_MS) throw error;
  }

  private ageMs(): number {
    return performance.now() - this.fetchedMs;
  }

  /** One request at a time, for all that wait. */
  private fetch(): Promise<void> {
    this.pending ??= this.replace().finally(() => {
      this.pending = undefined;
    });
    return this.pending;
  }

  private async replace(): Promise<void> {
    try {
      const keys = await this.cooling.fetch();
      this.local = createLocalJWKSet(keys);
      this.fetchedMs = performance.now();
      if (this.published.replace(keys)) this.onGone();
      this.tellReached();
    } catch (error) {
      this.tellAway(error as KeysUnavailable);
      throw error;
    }
  }

  private tellAway(error: KeysUnavailable): void {
    const isNew = this.away === undefined;
    this.away = error;
    if (!isNew) return;
    this.awayMs = performance.now();
    const minutes = Math.ceil((this.usableUntilMs - this.awayMs) / 60_000);
    const follows =
      minutes > 0
        ? `those fetched last are used for ${minutes} minutes more`
        : "its tokens get 503 until they can be fetched";
    processLog().warn(
      { event: "issuer_unreachable", why: error.message },
      `the keys of the token issuer at ${this.url} cannot be fetched: ${follows}`,
    );
  }

  private tellReached(): void {
    if (this.away === undefined) return;
    this.away = undefined;
    const seconds = Math.round((performance.now() - this.awayMs) / 1000);
    processLog().warn(
      { event: "issuer_reached" },
      `the keys of the token issuer at ${this.url} are fetched again after ${seconds} s`,
    );
  }
}

function request(url: string): Promise<Response> {
  return fetch(url, {
    headers: { accept: "application/json, application/jwk-set+json" },
    redirect: "manual",
    signal: AbortSignal.timeout(JWKS_TIMEOUT_MS),
  });
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
