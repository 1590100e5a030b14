/**
 * Decides whether a request may pass: compares what it presents with what is needed (docs/contract/access.md#scopes).
 * Pure.
 */
import { createHash, randomBytes } from "node:crypto";
import { ServiceError } from "../contracts/errors.ts";
import { KEY_SCOPES, type KeyRate, type KeyScope, type Permission } from "../contracts/keys.ts";

/**
 * Stands before the token of a session where a key's text is expected (sessions.ts). No header can hold it, so the token
 * is good in a cookie only.
 */
export const SESSION_PREFIX = "session\n";

export interface Need {
  scope: KeyScope;
  /** The API that the request is for, if it is for one. */
  api?: string;
  /** Whether the request changes nothing, so that a key with the scope `view` is sufficient too. */
  isRead?: boolean;
}

/** The key or token that a caller presents, and what it opens. */
export interface Principal {
  /** The key's id, or the token's subject: for limits and for the audit. */
  id: string;
  permissions: readonly Permission[];
  rate: KeyRate | null;
  /** For a token: when it expires. */
  expiresMs?: number | undefined;
}

/** A new key, in a form that secret scanners recognise. */
export function newKey(): string {
  return `quern_${randomBytes(24).toString("base64url")}`;
}

export function sha256Of(key: string): string {
  return createHash("sha256").update(key).digest("hex");
}

/**
 * The permissions in a token's claim or in a line of credentials. Both are a list, or a text with spaces (RFC 8693,
 * section 4.2). Words that are not Quern's are left out.
 */
export function permissionsOf(claim: unknown): Permission[] {
  const words = Array.isArray(claim) ? claim : typeof claim === "string" ? claim.split(" ") : [];
  return words.flatMap((word) => {
    const [scope, api, ...more] = typeof word === "string" ? word.split(":") : [];
    const isOurs = KEY_SCOPES.includes(scope as KeyScope) && more.length === 0 && api !== "";
    return isOurs ? [{ scope: scope as KeyScope, api: api ?? null }] : [];
  });
}

/**
 * Throws `unauthorized` without a known key, and `forbidden` if the key opens something else. `find` looks the key up
 * by its hash, so the time of the search reveals nothing about the key.
 */
export function assertPermission(
  key: string | undefined,
  find: (sha256: string) => Principal | undefined,
  need: Need,
): Principal {
  const principal = key === undefined ? undefined : find(sha256Of(key));
  if (principal === undefined) throw unauthorized(key, need.scope);
  return assertOpens(principal, need);
}

/** The same error whatever the request is for: callers without a key do not learn which APIs exist. */
export function unauthorized(key: string | undefined, scope: KeyScope): ServiceError {
  const what = isOfControlPlane(scope) ? "the control plane" : "this address";
  // An unknown session is as none: it has ended, or is of another server at this host.
  const why =
    key === undefined || key.startsWith(SESSION_PREFIX)
      ? `${what} needs a key`
      : "the key is unknown, was revoked or has expired";
  return new ServiceError("unauthorized", `${why}; ${howToSend(scope)}`);
}

/** Throws `forbidden` if none of the principal's permissions is sufficient. */
export function assertOpens(principal: Principal, need: Need): Principal {
  if (principal.permissions.some((permission) => opens(permission, need))) return principal;
  const has = principal.permissions
    .map(({ scope, api }) => (api === null ? scope : `${scope} for ${api}`))
    .join(", ");
  throw new ServiceError(
    "forbidden",
    `the key's scope is ${has || "nothing here"}; ${whatOf(need)} needs ${need.scope}: \`quern keys create --scope ${need.scope}${need.api === undefined ? "" : ` --api ${need.api}`}\``,
  );
}

function whatOf({ scope, api }: Need): string {
  if (api !== undefined) return `API ${api}`;
  return scope === "admin" ? "this request to the control plane" : "the control plane";
}

function opens(permission: Permission, need: Need): boolean {
  if (permission.api === null && opensEverywhere(permission.scope, need)) return true;
  return permission.scope === need.scope && (permission.api === null || permission.api === need.api);
}

/** Whether a scope for the whole server opens `need`, whatever its API. */
function opensEverywhere(scope: KeyScope, { isRead }: Need): boolean {
  return scope === "admin" || (scope === "view" && isRead === true);
}

function isOfControlPlane(scope: KeyScope): boolean {
  return scope === "admin" || scope === "view";
}

function howToSend(scope: KeyScope): string {
  const sent = "send it as Authorization: Bearer KEY or X-API-Key: KEY";
  return isOfControlPlane(scope)
    ? `${sent}; on the server's machine, use the content of admin-token in its data directory; elsewhere, set QUERN_API_KEY`
    : `${sent}; \`quern keys create --scope predict\` creates one for predictions, \`--scope submit\` for jobs`;
}
