/** The bodies of requests, with a limit for each and a budget for all. */
import type { Context } from "hono";
import { BodyBudget, type BodyOwner } from "../../access/body-budget.ts";
import { collect, HeldBody } from "../../access/held-body.ts";
import type { Keys } from "../../access/keys.ts";
import { ServiceError } from "../../contracts/errors.ts";
import {
  CONTROL_BODIES_BYTES_MAX,
  CONTROL_SMALL_BODIES_BYTES,
  SMALL_BODY_BYTES,
} from "../../contracts/limits/requests.ts";
import { assertStillOpen, senderOf } from "./authorization.ts";
import { askForBody, whenClosed } from "./connection.ts";

/** The budget of all bodies that this process holds. */
const bodies = new BodyBudget({
  most: CONTROL_BODIES_BYTES_MAX,
  forSmall: CONTROL_SMALL_BODIES_BYTES,
  smallBytes: SMALL_BODY_BYTES,
});

/** Whose share of the budget a request's body takes. */
export function bodyOwner(c: Context, keys: Keys, api = ""): BodyOwner {
  return { sender: senderOf(c, keys), api };
}

/**
 * Reads the whole body, whose bytes count until the response is finished. Throws:
 * - `body_too_large` as soon as it reaches `limit` bytes
 * - `queue_full` if the budget is used up
 * - `body_too_slow` if it stalls
 * - `unauthorized` if the request's key was revoked meanwhile
 */
export async function readBody(
  c: Context,
  owner: BodyOwner,
  { limit, cure }: { limit: number; cure: string },
): Promise<Buffer> {
  const held = new HeldBody(bodies, owner);
  whenClosed(c, () => held.release());
  const length = c.req.header("content-length");
  const body = c.req.raw.body as AsyncIterable<Uint8Array> | null;
  if (body === null) return Buffer.alloc(0);
  const check = (bytes: number) => {
    if (bytes >= limit)
      throw new ServiceError("body_too_large", `the body must be smaller than ${limit} bytes; ${cure}`);
  };
  const announced = length === undefined ? undefined : Number(length);
  const parts = await collect(body, held, announced, check, () => askForBody(c));
  assertStillOpen(c);
  return Buffer.concat(parts);
}

/** Throws `malformed_json`. */
export function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch (error) {
    const message = `the body is not valid JSON: ${(error as Error).message}`;
    throw new ServiceError("malformed_json", message, { cause: error });
  }
}
