/** Whether a request may pass, purely: what it presents against what is needed (docs/contract/access.md#scopes). */
import { createHash, randomBytes } from "node:crypto";
import { ServiceError } from "../contracts/errors.ts";
import { type Grant, KEY_SCOPES, type KeyRate, type KeyScope } from "../contracts/keys.ts";

export interface Need {
  scope: KeyScope;
  /** The API that is asked for, where it is one. */
  api?: string;
}

/** Who presents a key or a token, and what it opens. */
export interface Holder {
  /** The key's id, or the token's subject: for limits and for the audit. */
  id: string;
  grants: readonly Grant[];
  rate: KeyRate | null;
  /** Of a token: when it opens nothing any more. */
  expiresMs?: number | undefined;
}

/** A new key, in the form that secret scanners can know. */
export function newKey(): string {
  return `quern_${randomBytes(24).toString("base64url")}`;
}

export function sha256Of(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}

/** What a claim of a token, or a line of credentials, opens: a list, or a text with spaces (RFC 8693, section 4.2); what is not ours is left out. */
export function grantsOf(claim: unknown): Grant[] {
  const words = Array.isArray(claim) ? claim : typeof claim === "string" ? claim.split(" ") : [];
  return words.flatMap((word) => {
    const [scope, api, ...more] = typeof word === "string" ? word.split(":") : [];
    const isOurs = KEY_SCOPES.includes(scope as KeyScope) && more.length === 0 && api !== "";
    return isOurs ? [{ scope: scope as KeyScope, api: api ?? null }] : [];
  });
}

/**
 * Throws `unauthorized` without a key that we know, `forbidden` with one that opens something else. `find` looks a key up by
 * its hash, which tells nothing of the key by the time that it takes.
 */
export function assertPermission(
  key: string | undefined,
  find: (sha256: string) => Holder | undefined,
  need: Need,
): Holder {
  const holder = key === undefined ? undefined : find(sha256Of(key));
  if (holder === undefined) throw unauthorized(key, need.scope);
  return assertOpens(holder, need);
}

/** The same whatever is asked for: whether there is an API, and what it is, is not told to those without a key. */
export function unauthorized(key: string | undefined, scope: KeyScope): ServiceError {
  const what = scope === "admin" ? "the control plane" : "this address";
  const why =
    key === undefined ? `${what} needs a key` : "the key is not known here, was revoked or has expired";
  return new ServiceError("unauthorized", `${why}; ${howToSend(scope)}`);
}

/** Throws `forbidden` where none of its grants is what is needed. */
export function assertOpens(holder: Holder, need: Need): Holder {
  if (holder.grants.some((grant) => opens(grant, need))) return holder;
  const has = holder.grants
    .map(({ scope, api }) => (api === null ? scope : `${scope} for ${api}`))
    .join(", ");
  throw new ServiceError(
    "forbidden",
    `the key's scope is ${has || "nothing here"}; ${whatOf(need)} needs ${need.scope}: \`quern keys create --scope ${need.scope}${need.api === undefined ? "" : ` --api ${need.api}`}\``,
  );
}

function whatOf(need: Need): string {
  return need.api === undefined ? "the control plane" : `API ${need.api}`;
}

function opens(grant: Grant, need: Need): boolean {
  if (grant.scope === "admin" && grant.api === null) return true;
  return grant.scope === need.scope && (grant.api === null || grant.api === need.api);
}

function howToSend(scope: KeyScope): string {
  const sent = "send it as Authorization: Bearer KEY or X-API-Key: KEY";
  return scope === "admin"
    ? `${sent}; on the server's machine the content of admin-token in its data directory is one, elsewhere set QUERN_API_KEY`
    : `${sent}; \`quern keys create --scope predict\` makes one for predictions, \`--scope submit\` for jobs`;
}
