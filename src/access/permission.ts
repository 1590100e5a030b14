/** Whether a request may pass, purely: what it presents against what is needed (decisions, section 8). */
import { createHash, randomBytes } from "node:crypto";
import { ServiceError } from "../contracts/errors.ts";
import type { KeyScope, StoredKey } from "../contracts/keys.ts";

export interface Need {
  scope: KeyScope;
  /** The API that is asked for, where it is one. */
  api?: string;
}

/** A new key, in the form that secret scanners can know. */
export function newKey(): string {
  return `quern_${randomBytes(24).toString("base64url")}`;
}

export function sha256Of(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}

type Holder = Pick<StoredKey, "scope" | "api">;

/**
 * Throws `unauthorized` without a key that we know, `forbidden` with one that opens something else. `find` looks a key up by
 * its hash, which tells nothing of the key by the time that it takes.
 */
export function assertPermission(
  key: string | undefined,
  find: (sha256: string) => Holder | undefined,
  need: Need,
): void {
  const what = need.api === undefined ? "the control plane" : `API ${need.api}`;
  if (key === undefined) throw new ServiceError("unauthorized", `${what} needs a key; ${howToSend(need)}`);
  const holder = find(sha256Of(key));
  if (holder === undefined)
    throw new ServiceError("unauthorized", `the key is not known here, or was revoked; ${howToSend(need)}`);
  if (opens(holder, need)) return;
  const has = `${holder.scope}${holder.api === null ? "" : ` for ${holder.api}`}`;
  throw new ServiceError(
    "forbidden",
    `the key's scope is ${has}; ${what} needs ${need.scope}: \`quern keys create --scope ${need.scope}${need.api === undefined ? "" : ` --api ${need.api}`}\``,
  );
}

function opens(holder: Holder, need: Need): boolean {
  if (holder.scope === "admin" && holder.api === null) return true;
  return holder.scope === need.scope && (holder.api === null || holder.api === need.api);
}

function howToSend(need: Need): string {
  const sent = "send it as Authorization: Bearer KEY or X-API-Key: KEY";
  return need.scope === "admin"
    ? `${sent}; on the server's machine the content of admin-token in its data directory is one, elsewhere set QUERN_API_KEY`
    : `${sent}; \`quern keys create --scope ${need.scope}\` makes one`;
}
