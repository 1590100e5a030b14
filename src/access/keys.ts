/**
 * Creates, lists, rotates and revokes the keys of this server. A revocation returns when every connected gateway has
 * it.
 *
 * Two changes of one key may meet, and the database decides which comes first. Memory changes only after it, and each
 * change ends a key or brings its end nearer. So in whichever order they arrive here, a revoked key stays revoked.
 */
import { timestamp, wallMs } from "../base/clock.ts";
import { newToken } from "../base/ids.ts";
import type { Service } from "../base/service.ts";
import { parseDurationMs } from "../contracts/config/durations.ts";
import { ServiceError } from "../contracts/errors.ts";
import type { CreatedKey, KeyView, NewKey, StoredKey } from "../contracts/keys.ts";
import type { KeyRoute } from "../contracts/routes.ts";
import type { AdminKeys } from "./admin-token.ts";
import type { KeyUse } from "./key-use.ts";
import { newKey, type Principal, sha256Of } from "./permission.ts";
import { asKey, type Sessions } from "./sessions.ts";

export interface KeyStore {
  all(): Promise<(StoredKey & { last_used_time: string | null })[]>;
  add(key: StoredKey): Promise<void>;
  /** Adds the key's successor, and ends the key at `end` at the latest. False, and no change, if the key is revoked. */
  replace(id: string, end: string, successor: StoredKey): Promise<boolean>;
  revoke(id: string, time: string): Promise<void>;
}

export interface KeysDeps {
  store: KeyStore;
  use: KeyUse;
  admin: AdminKeys;
  sessions: Sessions;
  /** Whether tokens of an issuer, or signatures, are accepted too. */
  takesTokens: boolean;
}

/** The gateways, which compare keys with what requests present. */
export interface KeyUsers {
  /** Sends a change to the gateways, and waits until every connected one has it. */
  keysChanged(): Promise<void>;
}

/** How long gateways keep a key that has expired. */
const EXPIRED_KEPT_MS = 24 * 3_600_000;

const NO_USERS: KeyUsers = { keysChanged: async () => {} };

/** A new key, and what is stored of it. */
export function makeKey({ name, scope, api, rate, expires_in }: NewKey): {
  created: CreatedKey;
  stored: StoredKey;
} {
  const key = newKey();
  const expires_time = expires_in === null ? null : inMs(parseDurationMs(expires_in)!);
  const id = `k-${newToken().slice(0, 10)}`;
  const about = { id, name, scope, api, created_time: timestamp(), rate, expires_time, revoked_time: null };
  return { created: { ...about, last_used_time: null, key }, stored: { ...about, sha256: sha256Of(key) } };
}

/** The principal of a key, or of the key behind a session; undefined if it opens nothing any more. */
export function principalOf(key: KeyRoute | undefined, nowMs: number): Principal | undefined {
  if (key === undefined || key.revoked_time !== null) return undefined;
  if (isExpired(key, nowMs)) return undefined;
  return { id: key.session_of ?? key.id, permissions: [key], rate: key.rate };
}

function isExpired({ expires_time }: KeyRoute, nowMs: number): boolean {
  return expires_time !== null && Date.parse(expires_time) <= nowMs;
}

export class Keys implements Service {
  private readonly deps: KeysDeps;
  private readonly byHash = new Map<string, StoredKey>();
  private users: KeyUsers = NO_USERS;

  constructor(deps: KeysDeps) {
    this.deps = deps;
  }

  /** Sets who gets the changes. */
  serve(users: KeyUsers): void {
    this.users = users;
  }

  async start(): Promise<void> {
    for (const { last_used_time, ...key } of await this.deps.store.all()) {
      this.byHash.set(key.sha256, key);
      this.deps.use.know(key.id, last_used_time);
    }
  }

  async stop(): Promise<void> {}

  /**
   * Whether any key was ever created, or tokens are accepted. From then on APIs need a key unless their
   * `networking.auth` says `none`.
   */
  get isAny(): boolean {
    return this.areAny || this.deps.takesTokens;
  }

  /** Whether any key was ever created. */
  get areAny(): boolean {
    return this.byHash.size > 0;
  }

  find(sha256: string): Principal | undefined {
    return principalOf(this.withHash(sha256) ?? this.sessionWith(sha256), wallMs());
  }

  /** The key with this hash, which may have ended. No session. */
  withHash(sha256: string): StoredKey | undefined {
    return this.deps.admin.keys.find((key) => key.sha256 === sha256) ?? this.byHash.get(sha256);
  }

  /** The session with this hash, in the form of a key. It or its key may have ended. */
  sessionWith(sha256: string): StoredKey | undefined {
    const session = this.deps.sessions.find(sha256);
    const key = session && this.withHash(session.key_sha256);
    return key && asKey(session!, key);
  }

  /** Resolves when every connected gateway has the sessions as they are now. */
  sessionsChanged = (): Promise<void> => this.users.keysChanged();

  /** The keys and sessions that open something now, and keys that did a day ago. The admin token is the first. */
  forGateways(): StoredKey[] {
    // The day covers a clock that is set back.
    const sinceMs = wallMs() - EXPIRED_KEPT_MS;
    const keys = this.living().filter((key) => !isExpired(key, sinceMs));
    const live = this.deps.sessions.all().filter(({ sha256 }) => this.find(sha256) !== undefined);
    return [...this.deps.admin.keys, ...keys, ...live.map(({ sha256 }) => this.sessionWith(sha256)!)];
  }

  list(): KeyView[] {
    return this.living().map(({ sha256: _, ...about }) => ({
      ...about,
      last_used_time: this.deps.use.lastOf(about.id),
    }));
  }

  /** The name of the key with this id; undefined if there is none. */
  nameOf(id: string): string | undefined {
    return [...this.byHash.values()].find((key) => key.id === id)?.name ?? undefined;
  }

  /**
   * The response has the only copy of the key, so a gateway that has not applied the change does not fail it: there the
   * key opens nothing for a moment. The first key of a server closes what was open, so that must be everywhere.
   */
  async create(asked: NewKey): Promise<CreatedKey> {
    const { isAny } = this;
    const { created, stored } = makeKey(asked);
    await this.deps.store.add(stored);
    this.know(stored);
    const applied = this.users.keysChanged();
    await (isAny ? applied.catch(unlessUnavailable) : applied);
    return created;
  }

  /**
   * Creates a key that opens the same, and is valid for `expiresIn`. The former key stays valid for `graceMs` at most.
   */
  async rotate(id: string, graceMs: number, expiresIn?: string): Promise<CreatedKey> {
    const former = this.byId(id);
    if (expiresIn === undefined && former.expires_time !== null) throw expiryMissing(former);
    const expires_in = expiresIn === "never" ? null : (expiresIn ?? null);
    const { created, stored } = makeKey({ ...former, expires_in });
    const end = inMs(graceMs);
    if (!(await this.deps.store.replace(id, end, stored))) throw await this.revokedMeanwhile(former);
    this.change(former, ({ expires_time }) => ({ expires_time: sooner(expires_time, end) }));
    this.know(stored);
    await this.users.keysChanged();
    return created;
  }

  /** Replaces the admin token. The former one stays valid for `graceMs`. */
  async rotateAdmin(graceMs: number): Promise<CreatedKey> {
    const key = this.deps.admin.rotate(graceMs);
    await this.users.keysChanged();
    const [{ sha256: _, ...about }] = this.deps.admin.keys;
    return { ...about, created_time: timestamp(), last_used_time: null, key };
  }

  async revoke(id: string): Promise<StoredKey> {
    const key = this.byId(id);
    const revoked_time = timestamp();
    await this.deps.store.revoke(id, revoked_time);
    this.change(key, (now) => ({ revoked_time: now.revoked_time ?? revoked_time }));
    await this.users.keysChanged();
    return key;
  }

  private byId(id: string): StoredKey {
    const found = this.living().find((key) => key.id === id);
    if (found !== undefined) return found;
    throw notFound(id);
  }

  /** The database knows a revocation that may not have come here: its answer was lost, or is on its way. */
  private async revokedMeanwhile(key: StoredKey): Promise<ServiceError> {
    this.change(key, (now) => ({ revoked_time: now.revoked_time ?? timestamp() }));
    await this.users.keysChanged();
    return notFound(key.id);
  }

  private living(): StoredKey[] {
    return [...this.byHash.values()].filter(({ revoked_time }) => revoked_time === null);
  }

  private know(key: StoredKey): void {
    this.byHash.set(key.sha256, key);
    this.deps.use.know(key.id, null);
  }

  /** Changes what the key is now: another change may have come since it was read. */
  private change({ sha256 }: StoredKey, changed: (now: StoredKey) => Partial<StoredKey>): void {
    const now = this.byHash.get(sha256)!;
    this.byHash.set(sha256, { ...now, ...changed(now) });
  }
}

export function unlessUnavailable(error: unknown): void {
  if (!(error instanceof ServiceError) || error.code !== "server_unavailable") throw error;
}

/**
 * Its successor must not be valid for ever by mistake. The state refuses this, not the request's form: the same body is
 * right for a key without end.
 */
function expiryMissing({ id, expires_time }: StoredKey): ServiceError {
  const how = 'with `--expires-in`, or "expires_in" in the body: such as 720h, or never';
  return new ServiceError(
    "wrong_state",
    `key ${id} ends at ${expires_time}; say how long the new key is valid ${how}`,
  );
}

function notFound(id: string): ServiceError {
  return new ServiceError("key_not_found", `there is no key "${id}"; \`quern keys list\` shows them`);
}

function sooner(time: string | null, end: string): string {
  return time !== null && time < end ? time : end;
}

function inMs(ms: number): string {
  return new Date(wallMs() + ms).toISOString();
}
