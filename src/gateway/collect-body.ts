/** Collects a signed request's whole body in memory: its signature can be verified only when the body is complete. */
import type { IncomingMessage } from "node:http";
import { collect, type HeldBody } from "../access/held-body.ts";
import type { BodyHash } from "../access/sigv4.ts";
import { ServiceError } from "../contracts/errors.ts";
import { SUBMISSION_BYTES_LIMIT } from "../contracts/limits/submissions.ts";

/**
 * Adds the body to `hash` as it arrives. Throws `body_too_large`, `queue_full` or `body_too_slow`. `onTaken` is called
 * when the client may send the body.
 */
export async function collectBody(
  request: IncomingMessage,
  held: HeldBody,
  hash: BodyHash,
  onTaken: () => void,
): Promise<readonly Buffer[]> {
  const { "content-length": length, "transfer-encoding": coding } = request.headers;
  if (length === undefined && coding === undefined) return [];
  const announced = length === undefined ? undefined : Number(length);
  const check = (bytes: number) => {
    if (bytes <= SUBMISSION_BYTES_LIMIT) return;
    const message = `the body of a signed request may have at most ${SUBMISSION_BYTES_LIMIT} bytes`;
    throw new ServiceError("body_too_large", message);
  };
  const onPart = (part: Uint8Array) => hash.add(part);
  return (await collect(request, held, announced, check, onTaken, onPart)) as Buffer[];
}
