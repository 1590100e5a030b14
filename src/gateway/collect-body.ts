/** A request's whole body in memory, for the few that must be seen whole before they may pass. */
import type { IncomingMessage } from "node:http";
import { ServiceError } from "../contracts/errors.ts";

/** Throws `body_too_large`. */
export async function collectBody(request: IncomingMessage, limit: number): Promise<Buffer[]> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > limit)
      throw new ServiceError(
        "body_too_large",
        `the body of a signed request must have at most ${limit} bytes here`,
      );
    chunks.push(chunk);
  }
  return chunks;
}
