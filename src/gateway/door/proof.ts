/** `GET /-/proof`: proves that this server knows the admin token of its data directory (contracts/server-proof.ts). */
import type { IncomingMessage, ServerResponse } from "node:http";
import { ServiceError } from "../../contracts/errors.ts";
import { NONCE_PATTERN, proofOf } from "../../contracts/server-proof.ts";
import { sendError } from "../answers/send-error.ts";

export function answerProof(
  request: IncomingMessage,
  response: ServerResponse,
  requestId: string,
  tokenSha256: string | undefined,
): void {
  if (tokenSha256 === undefined) {
    const message = "the gateway does not know its routes yet; try again in a second";
    return sendError(
      response,
      new ServiceError("server_unavailable", message, { retryAfterS: 1 }),
      requestId,
    );
  }
  const nonce = /\?nonce=(.*)$/.exec(request.url!)?.[1] ?? "";
  if (!NONCE_PATTERN.test(nonce)) {
    const message = "nonce must be 64 hexadecimal digits in lower case";
    return sendError(response, new ServiceError("invalid_request", message), requestId);
  }
  const { localAddress: host, localPort: port } = request.socket;
  const text = JSON.stringify({ proof: proofOf({ tokenSha256, nonce, host, port }) });
  response.writeHead(200, {
    "content-type": "application/json",
    "content-length": text.length,
    "cache-control": "no-store",
    "x-request-id": requestId,
  });
  response.end(text);
}
