/**
 * Helpers that all resources of the controller's HTTP share: the context of a request, bodies with a limit, and
 * streams.
 */
import type { HttpBindings } from "@hono/node-server";
import type { Context, MiddlewareHandler } from "hono";
import { keyOf } from "../../access/admin-token.ts";
import { BodyBudget, type BodyOwner } from "../../access/body-budget.ts";
import { collect, HeldBody } from "../../access/held-body.ts";
import type { Keys } from "../../access/keys.ts";
import { assertOpens, assertPermission, type Need, sha256Of, unauthorized } from "../../access/permission.ts";
import { OneEachTurn, wallMs } from "../../base/clock.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { decodeForwarded, FORWARDED_HEADER, type Forwarded } from "../../contracts/forwarded.ts";
import { SLICE_MS } from "../../contracts/limits/event-loop.ts";
import {
  CONTROL_BODIES_BYTES_MAX,
  CONTROL_SMALL_BODIES_BYTES,
  SMALL_BODY_BYTES,
} from "../../contracts/limits/requests.ts";
import { LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX } from "../../contracts/limits/responses.ts";

/** The parsed header per request: a list asks once for each row. */
const read = new WeakMap<Context, Forwarded>();

/**
 * What the gateway says about the request. Only gateways set this header; they drop a client's header of the same name.
 */
export function forwarded(c: Context): Forwarded {
  const known = read.get(c);
  if (known !== undefined) return known;
  const said = decodeForwarded(c.req.header(FORWARDED_HEADER));
  read.set(c, said);
  return said;
}

/**
 * The address by which the client reached the gateway, for addresses in responses
 * (docs/contract/addresses.md#addresses-in-answers).
 */
export function baseUrl(c: Context): string {
  return forwarded(c).baseUrl;
}

/** Whether the request came from this machine or by a listener that reaches APIs with `api_gateway: none`. */
export function isInternal(c: Context): boolean {
  const { isLocal, listener } = forwarded(c);
  return isLocal || listener !== "main";
}

/**
 * Keeps the control plane off the main listener if it has a separate one, and off the listener for user code. The
 * gateway does so too, but it may read a path differently from this router.
 */
export function controlListenerOnly(hasControlListener: boolean): MiddlewareHandler {
  return async (c, next) => {
    const { listener } = forwarded(c);
    if (listener === "inside" || (hasControlListener && listener !== "control"))
      throw new ServiceError("route_not_found", `${c.req.path} is not an address of this listener`);
    await next();
  };
}

export function requestId(c: Context): string {
  return c.req.header("x-request-id") ?? "-";
}

/** A variable of a request's context: the keys that permitted the request. */
const LET_IN = "letIn";

/** A variable of a request's context: whether an address that needed no key needs one now. */
const ASKS_FOR_KEY = "asksForKey";

/** Permits a request without a key, as long as `asksForKey` says that none is needed. */
export function letAnybodyIn(c: Context, keys: Keys, asksForKey: () => boolean): void {
  c.set(ASKS_FOR_KEY, () => {
    if (!asksForKey() || forwarded(c).principal !== undefined) return false;
    const key = keyText(c);
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
  else assertPermission(keyText(c), (sha256) => keys.find(sha256), need);
}

/**
 * Throws `unauthorized` if the server needs keys and the request has no known one. Strangers must not learn what
 * exists.
 */
export function assertMayKnow(c: Context, keys: Keys): void {
  if (!keys.isAny || forwarded(c).principal !== undefined) return;
  const key = keyText(c);
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
  const key = keyText(c);
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
  try {
    assertOpened(c, keys, { scope: "admin" });
    return true;
  } catch {
    return false;
  }
}

/** A variable of a request's context: what the request created, for the audit. */
const MADE = "made";

/** Tells the audit what a request has created or changed, if its path does not say so. */
export function tellAudit(c: Context, what: string): void {
  c.set(MADE, what);
}

export function audited(c: Context): string | undefined {
  return c.get(MADE) as string | undefined;
}

/** Who makes the request: the id of a known key, or a token's subject. */
export function askedBy(c: Context, keys: Keys): string | null {
  const key = keyText(c);
  return forwarded(c).principal?.id ?? (key === undefined ? null : (keys.find(sha256Of(key))?.id ?? null));
}

function keyText(c: Context): string | undefined {
  return keyOf({ authorization: c.req.header("authorization"), "x-api-key": c.req.header("x-api-key") });
}

/** The budget of all bodies that this process holds. */
const bodies = new BodyBudget({
  most: CONTROL_BODIES_BYTES_MAX,
  forSmall: CONTROL_SMALL_BODIES_BYTES,
  smallBytes: SMALL_BODY_BYTES,
});

/** Whose share of the budget a request's body takes. */
export function bodyOwner(c: Context, keys: Keys, api = ""): BodyOwner {
  return { sender: askedBy(c, keys) ?? forwarded(c).client ?? "", api };
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
  const { outgoing } = c.env as HttpBindings;
  const held = new HeldBody(bodies, owner);
  if (outgoing.destroyed) held.release();
  else outgoing.once("close", () => held.release());
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

/** Aborted when the client disconnects, and when the response is finished. */
export function clientLeft(c: Context): AbortSignal {
  const { outgoing } = c.env as HttpBindings;
  const left = new AbortController();
  if (outgoing.destroyed) left.abort();
  else outgoing.once("close", () => left.abort());
  return left.signal;
}

/** Tells a client that waits for permission to send its body. */
export function askForBody(c: Context): void {
  if (c.req.header("expect") !== undefined) (c.env as HttpBindings).outgoing.writeContinue();
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

/** The checked `?limit=`. */
export function limitOf(c: Context): number {
  const text = c.req.query("limit");
  if (text === undefined) return LIST_LIMIT_DEFAULT;
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= LIST_LIMIT_MAX) return limit;
  throw new ServiceError(
    "invalid_request",
    `limit must be an integer from 1 to ${LIST_LIMIT_MAX} (got "${text}")`,
  );
}

/**
 * Reads a parameter that changes an action. A value that is neither true nor false is refused, and does not count as
 * false.
 */
export function flag(c: Context, name: string): boolean {
  const text = c.req.query(name);
  if (text === undefined || /^(0|f|false)$/i.test(text)) return false;
  if (isTrue(text)) return true;
  throw new ServiceError("invalid_request", `${name} must be true or false (got "${text.slice(0, 40)}")`);
}

export function isTrue(text: string | undefined): boolean {
  return text !== undefined && /^(1|t|true)$/i.test(text);
}

/**
 * All responses that are streamed take turns: one slice of one response in each turn of the event loop. Otherwise sixty
 * responses at once would block the event loop for sixty slices at a time.
 */
const TURNS = new OneEachTurn();

/**
 * Streams text as it is produced, and stops whenever the client disconnects. hono's bridge cancels the stream only if
 * the client disconnects during a write, so this watches the connection itself.
 */
export function streamText(
  c: Context,
  chunks: AsyncGenerator<string>,
  type: string,
  headers: Record<string, string> = {},
): Response {
  const { outgoing } = c.env as HttpBindings;
  const giveUp = () => {
    chunks.return(undefined).catch(() => {});
  };
  if (outgoing.destroyed) giveUp();
  else outgoing.once("close", giveUp);
  const encoder = new TextEncoder();
  let endMs = 0;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (performance.now() >= endMs) {
        await TURNS.turn();
        endMs = performance.now() + SLICE_MS;
      }
      const { value, done } = await chunks.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    cancel: giveUp,
  });
  return new Response(body, { headers: { "content-type": type, ...headers } });
}

export function jsonText(text: string, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(text, { status, headers: { "content-type": "application/json", ...headers } });
}
