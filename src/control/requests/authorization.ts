/**
 * Who makes a request, and whether it is permitted: when it arrives, when its body is complete, and while its response
 * is open.
 */
import type { Context } from "hono";
import { type KeyHeaders, keyOf } from "../../access/admin-token.ts";
import type { Keys } from "../../access/keys.ts";
import {
  assertOpens,
  assertPermission,
  type Need,
  type Principal,
  sha256Of,
  unauthorized,
} from "../../access/permission.ts";
import { DASHBOARD_HEADER } from "../../access/sessions.ts";
import { wallMs } from "../../base/clock.ts";
import type { DoneBy } from "../../contracts/keys.ts";
import { DONE_BY_LENGTH_MAX } from "../../contracts/limits/authorization.ts";
import { forwarded } from "./forwarded.ts";

const KEY_HEADERS = ["authorization", "x-api-key", "cookie", DASHBOARD_HEADER] as const;

/** A variable of a request's context: the keys that permitted the request. */
const LET_IN = "letIn";

/** A variable of a request's context: whether an address that needed no key needs one now. */
const ASKS_FOR_KEY = "asksForKey";

/** Permits a request without a key, as long as `asksForKey` says that none is needed. */
export function letAnybodyIn(c: Context, keys: Keys, asksForKey: () => boolean): void {
  c.set(ASKS_FOR_KEY, () => {
    if (!asksForKey() || forwarded(c).principal !== undefined) return false;
    const key = keyText(c, keys);
    return key === undefined || keys.find(sha256Of(key)) === undefined;
  });
}

/** Throws unless the request's key, or the token that the gateway has verified, permits `need`. */
export function assertKey(c: Context, keys: Keys, need: Need): void {
  assertOpened(c, keys, need);
  c.set(LET_IN, keys);
}

function assertOpened(c: Context, keys: Keys, need: Need): void {
  const verified = forwarded(c).principal;
  if (verified !== undefined) assertOpens(verified, need);
  else assertPermission(keyText(c, keys), (sha256) => keys.find(sha256), need);
}

/**
 * Throws `unauthorized` if the server needs keys and the request has no known one. Strangers must not learn what
 * exists.
 */
export function assertMayKnow(c: Context, keys: Keys): void {
  if (!keys.isAny || forwarded(c).principal !== undefined) return;
  const key = keyText(c, keys);
  if (key === undefined || keys.find(sha256Of(key)) === undefined) throw unauthorized(key, "predict");
}

/**
 * Whether the request is still permitted. A signature is valid only for its one response. If no key was needed, a sent
 * key may be any text, so only whether one is needed now counts.
 */
export function isStillOpen(c: Context): boolean {
  const keys = c.get(LET_IN) as Keys | undefined;
  if (keys === undefined) return (c.get(ASKS_FOR_KEY) as (() => boolean) | undefined)?.() !== true;
  const verified = forwarded(c).principal;
  if (verified !== undefined) return verified.expiresMs === undefined || verified.expiresMs > wallMs();
  const key = keyText(c, keys);
  return key === undefined || keys.find(sha256Of(key)) !== undefined;
}

/**
 * Throws `unauthorized` if the request's permission was revoked meanwhile: a body may arrive minutes after its head.
 * Called when the body is complete, before anything is done.
 */
export function assertStillOpen(c: Context): void {
  if (isStillOpen(c)) return;
  throw unauthorized(c.get(LET_IN) === undefined ? keyText(c) : (keyText(c) ?? ""), "predict");
}

/** Whether the request's key has the scope `admin`. */
export function isAdmin(c: Context, keys: Keys): boolean {
  return isPermitted(c, keys, { scope: "admin" });
}

/** Whether the request's key, or the token that the gateway has verified, permits `need`. */
export function isPermitted(c: Context, keys: Keys, need: Need): boolean {
  try {
    assertOpened(c, keys, need);
    return true;
  } catch {
    return false;
  }
}

/** Who makes the request: the id of a known key, or a token's subject. */
export function askedBy(c: Context, keys: Keys): string | null {
  return principalOf(c, keys)?.id ?? null;
}

/** The same for the audit, with the name of the key and what it permits, as in the claim of a token. */
export function callerOf(c: Context, keys: Keys): { by: string | null; by_name?: string; scope?: string } {
  const principal = principalOf(c, keys);
  if (principal === undefined) return { by: null };
  const by_name = keys.nameOf(principal.id);
  const scopes = principal.permissions.map(({ scope, api }) => (api === null ? scope : `${scope}:${api}`));
  return { by: principal.id, ...(by_name === undefined ? {} : { by_name }), scope: scopes.join(" ") };
}

/** The same, to be kept with what the request changes. The subject of a token may be long. */
export function doneBy(c: Context, keys: Keys): DoneBy {
  const { by, by_name } = callerOf(c, keys);
  return { id: by?.slice(0, DONE_BY_LENGTH_MAX) ?? null, name: by_name ?? null };
}

/** Who makes the request; undefined without a known key or token. */
export function principalOf(c: Context, keys: Keys): Principal | undefined {
  const key = keyText(c, keys);
  return forwarded(c).principal ?? (key === undefined ? undefined : keys.find(sha256Of(key)));
}

/** Who waits for a turn, or holds a share: `askedBy`, or the client's address. */
export function senderOf(c: Context, keys: Keys): string {
  return askedBy(c, keys) ?? forwarded(c).client ?? "";
}

/** The text of the request's key, or of its session; of several sessions one that `keys` know. */
export function keyText(c: Context, keys?: Keys): string | undefined {
  const headers: KeyHeaders = {};
  for (const name of KEY_HEADERS) headers[name] = c.req.header(name);
  return keyOf(headers, (text) => keys?.find(sha256Of(text)) !== undefined);
}
