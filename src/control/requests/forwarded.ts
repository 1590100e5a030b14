/** What the gateway says about a request that it has forwarded: the client, the listener, the caller. */
import type { Context, MiddlewareHandler } from "hono";
import { ServiceError } from "../../contracts/errors.ts";
import { decodeForwarded, FORWARDED_HEADER, type Forwarded } from "../../contracts/forwarded.ts";

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

/** The address of the control plane, for others than the client too: `--public-url` does not lead to its listener. */
export function controlUrl(c: Context): string {
  const { listener, reachedUrl } = forwarded(c);
  return (listener === "control" ? reachedUrl : undefined) ?? baseUrl(c);
}

/** The same for this client only: a browser on this machine need not come by `--public-url`. */
export function browserUrl(c: Context): string {
  const { isLocal, reachedUrl } = forwarded(c);
  return (isLocal ? reachedUrl : undefined) ?? controlUrl(c);
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
