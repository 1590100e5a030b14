/** The keys of this server: made, listed, revoked. A revocation is over when every connected gateway has it. */
import { timestamp } from "../base/clock.ts";
import { newToken } from "../base/ids.ts";
import type { Service } from "../base/service.ts";
import { ServiceError } from "../contracts/errors.ts";
import type { CreatedKey, KeyScope, KeyView, StoredKey } from "../contracts/keys.ts";
import { newKey, sha256Of } from "./permission.ts";

export interface KeyStore {
  all(): Promise<StoredKey[]>;
  insert(key: StoredKey): Promise<void>;
  /** False when there was none. */
  remove(id: string): Promise<boolean>;
}

export interface KeysDeps {
  store: KeyStore;
  adminToken: string;
  /** Brings the change to the gateways, and waits until each that is connected has it. */
  spread: () => Promise<void>;
}

/** A new key, and what is kept of it. */
export function makeKey(scope: KeyScope, api: string | null): { created: CreatedKey; stored: StoredKey } {
  const key = newKey();
  const view = { id: `k-${newToken().slice(0, 10)}`, scope, api, created_time: timestamp() };
  return { created: { ...view, key }, stored: { ...view, sha256: sha256Of(key) } };
}

export class Keys implements Service {
  private readonly deps: KeysDeps;
  private readonly byHash = new Map<string, StoredKey>();
  private readonly admin: StoredKey;

  constructor(deps: KeysDeps) {
    this.deps = deps;
    this.admin = {
      id: "admin-token",
      sha256: sha256Of(deps.adminToken),
      scope: "admin",
      api: null,
      created_time: "",
    };
  }

  async start(): Promise<void> {
    for (const key of await this.deps.store.all()) this.byHash.set(key.sha256, key);
  }

  async stop(): Promise<void> {}

  /** Whether any key was made: from then on APIs need one unless their `networking.auth` says `none`. */
  get isAny(): boolean {
    return this.byHash.size > 0;
  }

  find(sha256: string): StoredKey | undefined {
    return sha256 === this.admin.sha256 ? this.admin : this.byHash.get(sha256);
  }

  /** All that gateways compare with, the admin token included. */
  forGateways(): StoredKey[] {
    return [this.admin, ...this.byHash.values()];
  }

  list(): KeyView[] {
    return [...this.byHash.values()].map(({ sha256: _, ...view }) => view);
  }

  async create(scope: KeyScope, api: string | null): Promise<CreatedKey> {
    const { created, stored } = makeKey(scope, api);
    await this.deps.store.insert(stored);
    this.byHash.set(stored.sha256, stored);
    await this.deps.spread();
    return created;
  }

  async revoke(id: string): Promise<void> {
    if (!(await this.deps.store.remove(id)))
      throw new ServiceError("key_not_found", `there is no key "${id}"; \`quern keys list\` shows them`);
    for (const [sha256, stored] of this.byHash) if (stored.id === id) this.byHash.delete(sha256);
    await this.deps.spread();
  }
}
