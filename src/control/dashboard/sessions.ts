/** `/-/session`: signs a browser in and out, and says who is signed in (docs/contract/access.md#sessions). */
import { type Context, Hono } from "hono";
import { sentKeyOf } from "../../access/admin-token.ts";
import type { Keys } from "../../access/keys.ts";
import { sha256Of } from "../../access/permission.ts";
import { DASHBOARD_HEADER, SESSION_COOKIE, type Sessions, sessionTexts } from "../../access/sessions.ts";
import { wallMs } from "../../base/clock.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { firstErrors, legalKeysOf } from "../../contracts/field-errors.ts";
import { signInSchema } from "../../contracts/http/session-operations.ts";
import { SIGN_IN_BODY_BYTES_LIMIT } from "../../contracts/limits/authorization.ts";
import { onlyLooks, tellAudit, tellAuditCaller } from "../requests/audited.ts";
import { keyText, principalOf } from "../requests/authorization.ts";
import { bodyOwner, parseJson, readBody } from "../requests/body.ts";
import { browserUrl, controlUrl } from "../requests/forwarded.ts";
import { SignIn } from "./sign-in.ts";

/** A prefix with other characters cannot be the path of a cookie. The host may be any text that a client sent. */
const PREFIX = /^https?:\/\/[^/]*((?:\/[\w\-.~%]+)*)\/?$/;

export interface SessionRoutesDeps {
  keys: Keys;
  sessions: Sessions;
}

/** The operations that need no key, and the one that needs it: `open` comes before the check of keys. */
export function sessionRoutes(deps: SessionRoutesDeps): { open: Hono; closed: Hono } {
  const { keys } = deps;
  const signIn = new SignIn(deps);
  const open = new Hono();
  open.post("/-/session", async (c) => {
    const body = await readBody(c, bodyOwner(c, keys), {
      limit: SIGN_IN_BODY_BYTES_LIMIT,
      cure: "send a key or a code",
    });
    const { code, key } = parsed(body);
    const made = await (code === undefined ? signIn.withKey(key!) : signIn.withCode(code));
    const { scope, name, id } = made.key;
    tellAuditCaller(c, { by: id, ...(name === null ? {} : { by_name: name }), scope });
    tellAudit(c, code === undefined ? "signed in with the key" : "signed in with a code of the key");
    const { expires_time } = made;
    setCookie(c, made.token, Math.max(0, Math.floor((Date.parse(expires_time) - wallMs()) / 1000)));
    return c.json({ scope, name, expires_time }, 201);
  });
  open.get("/-/session", (c) => {
    c.header("cache-control", "no-store");
    return c.json(signedIn(c, keys));
  });
  open.delete("/-/session", async (c) => {
    const { cookie, [DASHBOARD_HEADER]: header } = c.req.header();
    const hashes = sessionTexts({ cookie, [DASHBOARD_HEADER]: header }).map(sha256Of);
    if (!(await signIn.signOut(hashes))) onlyLooks(c);
    setCookie(c, "", 0);
    return c.json({ message: "signed out" });
  });

  const closed = new Hono();
  closed.post("/-/session/codes", (c) => {
    const key = sentKeyOf({
      authorization: c.req.header("authorization"),
      "x-api-key": c.req.header("x-api-key"),
    });
    const made = signIn.makeCode(key);
    c.header("cache-control", "no-store");
    return c.json({ ...made, url: `${controlUrl(c)}/-/ui/#code=${made.code}` }, 201);
  });
  return { open, closed };
}

function parsed(body: Buffer): { code?: string | undefined; key?: string | undefined } {
  const value = parseJson(body);
  const checked = signInSchema.safeParse(value);
  if (checked.success) return checked.data;
  const errors = firstErrors(checked.error.issues, value, (at) => legalKeysOf(signInSchema, at));
  throw new ServiceError("invalid_request", "the sign-in is not valid; send a key or a code", errors.details);
}

/** Who the request is of. `scope` is null for callers that may not use the dashboard. */
function signedIn(c: Context, keys: Keys) {
  const principal = principalOf(c, keys);
  const scopes = principal?.permissions.filter(({ api }) => api === null).map(({ scope }) => scope) ?? [];
  const scope = (["admin", "view"] as const).find((one) => scopes.includes(one)) ?? null;
  if (scope === null) return { scope, name: null, expires_time: null };
  const hash = sha256Of(keyText(c, keys) ?? "");
  const key = keys.sessionWith(hash) ?? keys.withHash(hash);
  return { scope, name: key?.name ?? null, expires_time: key?.expires_time ?? null };
}

/** The browser sends it to this server only: below its prefix, and encrypted if it was reached so. */
function setCookie(c: Context, token: string, seconds: number): void {
  const url = browserUrl(c);
  const [, prefix] = PREFIX.exec(url) ?? [];
  const parts = [
    `${SESSION_COOKIE}=${token}`,
    `Path=${prefix === undefined || prefix === "" ? "/" : prefix}`,
    `Max-Age=${seconds}`,
    "HttpOnly",
    "SameSite=Strict",
  ];
  if (url.startsWith("https:")) parts.push("Secure");
  c.header("set-cookie", parts.join("; "));
  c.header("cache-control", "no-store");
}
