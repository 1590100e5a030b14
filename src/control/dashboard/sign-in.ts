/** Signs browsers in and out: with a key, or with a one-time code that a key made. */
import { type Keys, principalOf, unlessUnavailable } from "../../access/keys.ts";
import { assertOpens, sha256Of, unauthorized } from "../../access/permission.ts";
import type { Sessions } from "../../access/sessions.ts";
import { wallMs } from "../../base/clock.ts";
import { ServiceError } from "../../contracts/errors.ts";
import type { StoredKey } from "../../contracts/keys.ts";
import { SIGN_IN_CODE_MS, SIGN_INS_OF_A_KEY_MAX } from "../../contracts/limits/authorization.ts";
import { SignInCodes } from "./sign-in-codes.ts";

const MINUTE_MS = 60_000;

/** A new session: its token, its key, and when it ends. */
export interface SignedIn {
  token: string;
  key: StoredKey;
  expires_time: string;
}

export class SignIn {
  private readonly keys: Keys;
  private readonly sessions: Sessions;
  private readonly codes = new SignInCodes();
  private readonly signIns = new CountsOfKeys("sign in");
  private readonly codesMade = new CountsOfKeys("make a code");

  constructor({ keys, sessions }: { keys: Keys; sessions: Sessions }) {
    this.keys = keys;
    this.sessions = sessions;
  }

  /**
   * Makes a code for the key that a request presents. A session makes none, so it cannot outlive its 12 hours. Throws
   * `forbidden` and `rate_limited`.
   */
  makeCode(key: string | undefined): { code: string; expires_time: string } {
    const known = key === undefined ? undefined : this.keys.withHash(sha256Of(key));
    if (known === undefined)
      throw new ServiceError(
        "forbidden",
        "only a key makes a code: neither a token, a signature nor a session; create a key: `quern keys create --scope view`",
      );
    this.codesMade.count(known.sha256, performance.now());
    const code = this.codes.make(known.sha256, performance.now());
    return { code, expires_time: new Date(wallMs() + SIGN_IN_CODE_MS).toISOString() };
  }

  /** Throws `unauthorized` if the code is unknown, was used or is too old, and as `withKey`. */
  withCode(code: string): Promise<SignedIn> {
    const sha256 = this.codes.take(code, performance.now());
    if (sha256 === undefined)
      throw new ServiceError(
        "unauthorized",
        "the code is unknown, was used, or is older than a minute; run `quern ui` again, or sign in with a key",
      );
    return this.open(sha256, undefined);
  }

  /** Throws `unauthorized`, `forbidden` if the key's scope is neither `view` nor `admin`, and `rate_limited`. */
  withKey(key: string): Promise<SignedIn> {
    return this.open(sha256Of(key), key);
  }

  /** Ends the sessions with these hashes; false if there is none. Resolves when no connected gateway accepts one. */
  async signOut(hashes: readonly string[]): Promise<boolean> {
    const open = hashes.filter((sha256) => this.sessions.find(sha256) !== undefined);
    if (open.length === 0) return false;
    try {
      await this.sessions.end(open);
    } finally {
      await this.keys.sessionsChanged();
    }
    return true;
  }

  private async open(sha256: string, text: string | undefined): Promise<SignedIn> {
    const { keys } = this;
    const key = keys.withHash(sha256);
    const principal = principalOf(key, wallMs());
    if (principal === undefined) throw unauthorized(text ?? "", "view");
    assertOpens(principal, { scope: "view" });
    this.signIns.count(sha256, performance.now());
    const isLive = (session: { sha256: string }) => keys.find(session.sha256) !== undefined;
    const { token, session } = await this.sessions.open(key!, isLive);
    // A gateway that has not applied it yet refuses the cookie for a moment.
    await keys.sessionsChanged().catch(unlessUnavailable);
    return { token, key: key!, expires_time: keys.sessionWith(session.sha256)?.expires_time ?? "" };
  }
}

/** How often each key did something within a minute, which begins with the first time. */
class CountsOfKeys {
  private readonly what: string;
  /** By the hashes of keys. `endMs` is on the clock of `performance.now()`. */
  private readonly counts = new Map<string, { endMs: number; times: number }>();

  constructor(what: string) {
    this.what = what;
  }

  /** Throws `rate_limited` if it was too often. */
  count(sha256: string, nowMs: number): void {
    for (const [key, { endMs }] of this.counts) if (endMs <= nowMs) this.counts.delete(key);
    const counted = this.counts.get(sha256) ?? { endMs: nowMs + MINUTE_MS, times: 0 };
    this.counts.set(sha256, counted);
    counted.times++;
    if (counted.times <= SIGN_INS_OF_A_KEY_MAX) return;
    const retryAfterS = Math.ceil((counted.endMs - nowMs) / 1000);
    const message = `a key may ${this.what} ${SIGN_INS_OF_A_KEY_MAX} times a minute; try again in ${retryAfterS} s`;
    throw new ServiceError("rate_limited", message, { retryAfterS });
  }
}
