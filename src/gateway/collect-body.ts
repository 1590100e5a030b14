/** Collects a signed request's whole body in memory: its signature can be verified only when the body is complete. */
import type { IncomingMessage } from "node:http";
import { collect, type HeldBody } from "../access/held-body.ts";
import { ServiceError } from "../contracts/errors.ts";

/** Throws `body_too_large`, `queue_full` or `body_too_slow`. `onTaken` is called when the client may send the body. */
export async function collectBody(
  request: IncomingMessage,
  held: HeldBody,
  limit: number,
  onTaken: () => void,
): Promise<readonly Buffer[]> {
  const { "content-length": length, "transfer-encoding": coding } = request.headers;
  if (length === undefined && coding === undefined) return [];
  const announced = length === undefined ? undefined : Number(length);
  const check = (bytes: number) => {
    if (bytes <= limit) return;
    const message = `the body of a signed request may have at most ${limit} bytes`;
    throw new ServiceError("body_too_large", message);
  };
  return (await collect(request, held, announced, check, onTaken)) as Buffer[];
}
