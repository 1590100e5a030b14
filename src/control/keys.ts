/** `/-/keys`: make, list and revoke keys. */
import { Hono } from "hono";
import type { Keys } from "../access/keys.ts";
import { ServiceError } from "../contracts/errors.ts";
import { namedIssues, toFieldErrors } from "../contracts/field-errors.ts";
import { newKeySchema } from "../contracts/keys.ts";
import { parseJson, readBody } from "./http.ts";

const BODY_BYTES_LIMIT = 10_000;

export function keyRoutes(keys: Keys): Hono {
  const app = new Hono();
  app.get("/-/keys", (c) => c.json({ keys: keys.list() }));
  app.post("/-/keys", async (c) => {
    const body = await readBody(c, BODY_BYTES_LIMIT, "it has a scope and, at will, an api");
    const { scope, api } = parseNewKey(body);
    return c.json(await keys.create(scope, api ?? null));
  });
  app.delete("/-/keys/:id", async (c) => {
    const id = c.req.param("id");
    await keys.revoke(id);
    return c.json({ message: `revoked key ${id}` });
  });
  return app;
}

function parseNewKey(body: Buffer) {
  const value = parseJson(body);
  const checked = newKeySchema.safeParse(value);
  if (checked.success) return checked.data;
  const fields = toFieldErrors(namedIssues(checked.error.issues, value, () => ["scope", "api"]));
  throw new ServiceError("invalid_request", "the key cannot be made as it was asked for", { fields });
}
