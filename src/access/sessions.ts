/**
 * The sessions of browsers that are signed in to the dashboard (docs/contract/access.md#sessions). A session has a
 * random token of its own, of which only the hash is kept. It opens what its key opens, and ends with its key.
 */
import { randomBytes } from "node:crypto";
import { timestamp, wallMs } from "../base/clock.ts";
import type { Service } from "../base/service.ts";
import type { StoredKey } from "../contracts/keys.ts";
import {
  SESSION_MS,
  SESSIONS_MAX,
  SESSIONS_OF_A_KEY_MAX,
  SESSIONS_OF_A_REQUEST_MAX,
} from "../contracts/limits/authorization.ts";
import { SESSION_PREFIX, sha256Of } from "./permission.ts";

/** A session as it is stored. */
export interface StoredSession {
  /** SHA-256 of `sessionText`, hexadecimal. */
  sha256: string;
  key_id: string;
  /** SHA-256 of the key that made it: a rotation of the admin token keeps the id, and changes this. */
  key_sha256: string;
  created_time: string;
  expires_time: string;
}

export interface SessionStore {
  all(): Promise<StoredSession[]>;
  add(session: StoredSession): Promise<void>;
  remove(hashes: readonly string[]): Promise<void>;
}

type Headers = { cookie?: string | undefined; "x-quern-dashboard"?: string | string[] | undefined };

export const SESSION_COOKIE = "quern_session";
/** No page of another origin can send it with a cookie: that needs a preflight, whose response never allows cookies. */
export const DASHBOARD_HEADER = "x-quern-dashboard";

const COOKIES = new RegExp(`(?:^|;\\s*)${SESSION_COOKIE}=([\\w-]{43})(?=;|$)`, "g");
const ANY_COOKIE = new RegExp(`^\\s*${SESSION_COOKIE}\\s*(=|$)`);

/**
 * The session of a request, in the form of a key's text. Undefined without the cookie, or without the header
 * `X-Quern-Dashboard: 1`. If it has several, as when a page at another port of the host has set one, `isKnown` decides.
 */
export function sessionText(headers: Headers, isKnown?: (text: string) => boolean): string | undefined {
  const texts = sessionTexts(headers);
  const known = isKnown === undefined || texts.length < 2 ? undefined : texts.find(isKnown);
  return known ?? texts[0];
}

/** All sessions of a request, up to a few. */
export function sessionTexts({ cookie, [DASHBOARD_HEADER]: header }: Headers): string[] {
  if (header !== "1" || cookie === undefined) return [];
  const found = [...cookie.matchAll(COOKIES)].slice(0, SESSIONS_OF_A_REQUEST_MAX);
  return found.map(([, token]) => SESSION_PREFIX + token);
}

/** Whether `sessionText` made this text. */
export function isSessionText(key: string | undefined): boolean {
  return key?.startsWith(SESSION_PREFIX) === true;
}

/** A `Cookie` header without sessions; undefined if nothing is left. Predictors never get a session. */
export function withoutSession(cookie: string): string | undefined {
  if (!cookie.includes(SESSION_COOKIE)) return cookie;
  const others = cookie.split(";").filter((pair) => !ANY_COOKIE.test(pair));
  return others.length === 0 ? undefined : others.join(";").trim();
}

/** A session as a key: it permits what `key` permits, and ends with it. */
export function asKey({ sha256, created_time, expires_time }: StoredSession, key: StoredKey): StoredKey {
  const end = key.expires_time !== null && key.expires_time < expires_time ? key.expires_time : expires_time;
  const id = `session-${sha256.slice(0, 16)}`;
  return { ...key, id, sha256, created_time, expires_time: end, session_of: key.id };
}

/** The sessions to end before one more of the key with `keySha256`: dead ones, and the oldest if there are too many. */
export function surplus(
  sessions: readonly StoredSession[],
  keySha256: string,
  isLive: (session: StoredSession) => boolean,
): StoredSession[] {
  const live = sessions.filter(isLive).sort((one, other) => (one.created_time < other.created_time ? -1 : 1));
  const ofKey = live.filter(({ key_sha256 }) => key_sha256 === keySha256);
  const ended = new Set(ofKey.slice(0, Math.max(0, ofKey.length + 1 - SESSIONS_OF_A_KEY_MAX)));
  const left = live.filter((session) => !ended.has(session));
  for (const session of left.slice(0, Math.max(0, left.length + 1 - SESSIONS_MAX))) ended.add(session);
  return sessions.filter((session) => ended.has(session) || !isLive(session));
}

export class Sessions implements Service {
  private readonly store: SessionStore;
  private readonly byHash = new Map<string, StoredSession>();

  constructor(store: SessionStore) {
    this.store = store;
  }

  async start(): Promise<void> {
    for (const session of await this.store.all()) this.byHash.set(session.sha256, session);
  }

  async stop(): Promise<void> {}

  find(sha256: string): StoredSession | undefined {
    return this.byHash.get(sha256);
  }

  all(): StoredSession[] {
    return [...this.byHash.values()];
  }

  /** Opens a session of a key, durably. `isLive`: whether a session still opens something. */
  async open(
    key: StoredKey,
    isLive: (session: StoredSession) => boolean,
  ): Promise<{ token: string; session: StoredSession }> {
    await this.end(surplus(this.all(), key.sha256, isLive).map(({ sha256 }) => sha256));
    const token = randomBytes(32).toString("base64url");
    const session = {
      sha256: sha256Of(SESSION_PREFIX + token),
      ...{ key_id: key.id, key_sha256: key.sha256, created_time: timestamp() },
      expires_time: new Date(wallMs() + SESSION_MS).toISOString(),
    };
    await this.store.add(session);
    this.byHash.set(session.sha256, session);
    return { token, session };
  }

  /** Ends sessions, durably. If that fails, as on a full disk, they open nothing until the next start. */
  async end(hashes: readonly string[]): Promise<void> {
    if (hashes.length === 0) return;
    for (const sha256 of hashes) this.byHash.delete(sha256);
    await this.store.remove(hashes);
  }
}
