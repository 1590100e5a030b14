/** The keys of this server: made, listed, rotated, revoked. A revocation is over when every connected gateway has it. */
import { timestamp, wallMs } from "../base/clock.ts";
import { newToken } from "../base/ids.ts";
import type { Service } from "../base/service.ts";
import { ServiceError } from "../contracts/errors.ts";
import {
  ADMIN_KEY_ID,
  type CreatedKey,
  type Grant,
  type KeyRate,
  type KeyView,
  type StoredKey,
} from "../contracts/keys.ts";
import { type Holder, newKey, sha256Of } from "./permission.ts";

export interface KeyStore {
  all(): Promise<StoredKey[]>;
  save(key: StoredKey): Promise<void>;
}

export interface KeysDeps {
  store: KeyStore;
  adminToken: string;
  /** Tokens of an issuer, or signatures, are taken too. */
  takesTokens: boolean;
  /** Brings the change to the gateways, and waits until each that is connected has it. */
  spread: () => Promise<void>;
}

export interface NewKey extends Grant {
  rate: KeyRate | null;
  /** Milliseconds from now; null for never. */
  expiresInMs: number | null;
}

/** A new key, and what is kept of it. */
export function makeKey({ scope, api, rate, expiresInMs }: NewKey): {
  created: CreatedKey;
  stored: StoredKey;
} {
  const key = newKey();
  const expires_time = expiresInMs === null ? null : inMs(expiresInMs);
  const id = `k-${newToken().slice(0, 10)}`;
  const view = { id, scope, api, created_time: timestamp(), rate, expires_time, revoked_time: null };
  return { created: { ...view, key }, stored: { ...view, sha256: sha256Of(key) } };
}

/** What a key opens now; undefined where it opens nothing any more. */
export function holderOf(key: StoredKey | undefined, nowMs: number): Holder | undefined {
  if (key === undefined || key.revoked_time !== null) return undefined;
  if (key.expires_time !== null && Date.parse(key.expires_time) <= nowMs) return undefined;
  return { id: key.id, grants: [key], rate: key.rate };
}

export class Keys implements Service {
  private readonly deps: KeysDeps;
  private readonly byHash = new Map<string, StoredKey>();
  private readonly admin: StoredKey;

  constructor(deps: KeysDeps) {
    this.deps = deps;
    this.admin = {
      id: ADMIN_KEY_ID,
      sha256: sha256Of(deps.adminToken),
      scope: "admin",
      api: null,
      created_time: "",
      rate: null,
      expires_time: null,
      revoked_time: null,
    };
  }

  async start(): Promise<void> {
    for (const key of await this.deps.store.all()) this.byHash.set(key.sha256, key);
  }

  async stop(): Promise<void> {}

  /**
   * Whether any key was ever made, or tokens are taken: from then on APIs need one unless their `networking.auth` says
   * `none`.
   */
  get isAny(): boolean {
    return this.byHash.size > 0 || this.deps.takesTokens;
  }

  find(sha256: string): Holder | undefined {
    return holderOf(sha256 === this.admin.sha256 ? this.admin : this.byHash.get(sha256), wallMs());
  }

  /** All that gateways compare with, the admin token included. */
  forGateways(): StoredKey[] {
    return [this.admin, ...this.living()];
  }

  list(): KeyView[] {
    return this.living().map(({ sha256: _, ...view }) => view);
  }

  async create(asked: NewKey): Promise<CreatedKey> {
    const { created, stored } = makeKey(asked);
    await this.keep(stored);
    await this.deps.spread();
    return created;
  }

  /** A new key that opens the same; the former one does so for `graceMs` more. */
  async rotate(id: string, graceMs: number): Promise<CreatedKey> {
    const former = this.byId(id);
    const { created, stored } = makeKey({ ...former, expiresInMs: null });
    const end = inMs(graceMs);
    const isSooner = former.expires_time === null || end < former.expires_time;
    await this.keep({ ...former, expires_time: isSooner ? end : former.expires_time });
    await this.keep(stored);
    await this.deps.spread();
    return created;
  }

  async revoke(id: string): Promise<void> {
    await this.keep({ ...this.byId(id), revoked_time: timestamp() });
    await this.deps.spread();
  }

  private byId(id: string): StoredKey {
    const found = this.living().find((key) => key.id === id);
    if (found !== undefined) return found;
    throw new ServiceError("key_not_found", `there is no key "${id}"; \`quern keys list\` shows them`);
  }

  private living(): StoredKey[] {
    return [...this.byHash.values()].filter(({ revoked_time }) => revoked_time === null);
  }

  private async keep(key: StoredKey): Promise<void> {
    await this.deps.store.save(key);
    this.byHash.set(key.sha256, key);
  }
}

function inMs(ms: number): string {
  return new Date(wallMs() + ms).toISOString();
}
