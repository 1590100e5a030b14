/**
 * Collects whole bodies in memory before their requests go to the controller: those of signed requests, because a
 * signature can be verified only when the body is complete, and small ones of callers without a key, because a place at
 * the controller should not wait for a slow body.
 */
import type { IncomingMessage } from "node:http";
import { collect, type HeldBody } from "../access/held-body.ts";
import type { BodyHash } from "../access/sigv4.ts";
import { ServiceError } from "../contracts/errors.ts";
import { SIGN_IN_BODY_BYTES_LIMIT } from "../contracts/limits/authorization.ts";
import { SMALL_BODY_BYTES } from "../contracts/limits/requests.ts";
import { SUBMISSION_BYTES_LIMIT } from "../contracts/limits/submissions.ts";

/** How many bytes of a body are taken, and what is done with each part. */
interface Collected {
  most: number;
  whose: string;
  onPart?: (part: Uint8Array) => void;
}

/**
 * Adds the body to `hash` as it arrives. Throws `body_too_large`, `queue_full` or `body_too_slow`. `onTaken` is called
 * when the client may send the body.
 */
export function collectBody(
  request: IncomingMessage,
  held: HeldBody,
  hash: BodyHash,
  onTaken: () => void,
): Promise<readonly Buffer[]> {
  const onPart = (part: Uint8Array) => hash.add(part);
  return collectAll(
    request,
    held,
    { most: SUBMISSION_BYTES_LIMIT, whose: "a signed request", onPart },
    onTaken,
  );
}

/**
 * How many bytes `collectSmall` takes of this request of a caller without a key. Undefined: its body comes while the
 * request has a place. `isOpen`: for an address that needs no key. Elsewhere only a sign-in is more than a refusal.
 */
export function smallBodyMost(
  { method, url, headers }: IncomingMessage,
  isOpen: boolean,
): number | undefined {
  const { "content-length": length, "transfer-encoding": coding } = headers;
  if (length === undefined && coding === undefined) return undefined;
  const isSignIn = method === "POST" && url === "/-/session";
  if (!isSignIn && (!isOpen || length === undefined)) return undefined;
  const most = isSignIn ? SIGN_IN_BODY_BYTES_LIMIT : SMALL_BODY_BYTES;
  return Number(length ?? 0) <= most ? most : undefined;
}

/** Throws as `collectBody`. */
export function collectSmall(
  request: IncomingMessage,
  held: HeldBody,
  most: number,
  onTaken: () => void,
): Promise<readonly Buffer[]> {
  return collectAll(request, held, { most, whose: "this request" }, onTaken);
}

async function collectAll(
  request: IncomingMessage,
  held: HeldBody,
  { most, whose, onPart }: Collected,
  onTaken: () => void,
): Promise<readonly Buffer[]> {
  const { "content-length": length, "transfer-encoding": coding } = request.headers;
  if (length === undefined && coding === undefined) return [];
  const announced = length === undefined ? undefined : Number(length);
  const check = (bytes: number) => {
    if (bytes <= most) return;
    throw new ServiceError("body_too_large", `the body of ${whose} may have at most ${most} bytes`);
  };
  return (await collect(request, held, announced, check, onTaken, onPart)) as Buffer[];
}
