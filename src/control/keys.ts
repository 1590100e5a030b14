/** `/-/keys`: creates, lists and revokes keys. */
import { Hono } from "hono";
import type * as z from "zod";
import type { Keys } from "../access/keys.ts";
import { parseDurationMs } from "../contracts/config/durations.ts";
import { ServiceError } from "../contracts/errors.ts";
import { firstErrors, legalKeysOf } from "../contracts/field-errors.ts";
import {
  ADMIN_TOKEN_NAMES,
  askedKey,
  type KeyView,
  newKeySchema,
  rotateKeySchema,
} from "../contracts/keys.ts";
import { tellAudit } from "./requests/audited.ts";
import { bodyOwner, parseJson, readBody } from "./requests/body.ts";

const BODY_BYTES_LIMIT = 10_000;
/** How long a former key works, if the request does not say. Its users need time to change. */
const KEY_GRACE = "24h";
/** The command line on the server's machine needs no time, and a token is replaced most often because it leaked. */
const ADMIN_GRACE = "0s";

export function keyRoutes(keys: Keys): Hono {
  const app = new Hono();
  app.get("/-/keys", (c) => c.json({ keys: keys.list() }));
  app.post("/-/keys", async (c) => {
    const cure = "send a scope and, optionally, an api, a name, a rate and expires_in";
    const body = await readBody(c, bodyOwner(c, keys), { limit: BODY_BYTES_LIMIT, cure });
    const created = await keys.create(askedKey(parse(newKeySchema, body)));
    tellAudit(c, nameOf(created));
    return c.json(created);
  });
  app.post("/-/keys/:id/rotate", async (c) => {
    const cure = "send at most a grace and expires_in";
    const body = await readBody(c, bodyOwner(c, keys), { limit: BODY_BYTES_LIMIT, cure });
    const { grace, expires_in } = parse(rotateKeySchema, body.length === 0 ? Buffer.from("{}") : body);
    const id = c.req.param("id");
    if (expires_in !== undefined && ADMIN_TOKEN_NAMES.includes(id))
      throw new ServiceError("invalid_request", "the admin token has no expiry time; leave expires_in out");
    const created = ADMIN_TOKEN_NAMES.includes(id)
      ? await keys.rotateAdmin(parseDurationMs(grace ?? ADMIN_GRACE)!)
      : await keys.rotate(id, parseDurationMs(grace ?? KEY_GRACE)!, expires_in);
    tellAudit(c, nameOf(created));
    return c.json(created);
  });
  app.delete("/-/keys/:id", async (c) => {
    const id = c.req.param("id");
    tellAudit(c, nameOf(await keys.revoke(id)));
    return c.json({ message: `revoked key ${id}` });
  });
  return app;
}

/** Describes a key for the audit: its id, its name and its permission. */
function nameOf({ id, name, scope, api }: Pick<KeyView, "id" | "name" | "scope" | "api">): string {
  return `${name === null ? id : `${id} "${name}"`} (${api === null ? scope : `${scope} for ${api}`})`;
}

function parse<Value>(schema: z.ZodType<Value>, body: Buffer): Value {
  const value = parseJson(body);
  const checked = schema.safeParse(value);
  if (checked.success) return checked.data;
  const errors = firstErrors(checked.error.issues, value, (at) => legalKeysOf(schema, at));
  throw new ServiceError("invalid_request", "the request for a key is not valid", errors.details);
}
