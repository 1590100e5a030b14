/**
 * Ends responses that cost far more than their bytes, for every request that this process sends. A server that sends
 * its body in chunks of one byte, or one `103 Early Hints` after the other, would keep the event loop busy.
 */
import { subscribe } from "node:diagnostics_channel";
import type { ClientRequest, IncomingMessage } from "node:http";
import {
  RESPONSE_INTERIM_MAX,
  RESPONSE_PIECES_BYTES_MIN,
  RESPONSE_PIECES_COUNTED,
} from "../contracts/limits/stores.ts";

const REQUEST = "http.client.request.start";
const RESPONSE = "http.client.response.finish";

export function boundResponses(): void {
  subscribe(REQUEST, (message) => boundInterim((message as { request: ClientRequest }).request));
  subscribe(RESPONSE, (message) => boundPieces((message as { response: IncomingMessage }).response));
}

/** RFC 9110, section 15.2: a response may follow any number of interim ones. */
function boundInterim(request: ClientRequest): void {
  let count = 0;
  request.on("information", () => {
    if (++count > RESPONSE_INTERIM_MAX)
      request.destroy(new Error(`the server sent more than ${RESPONSE_INTERIM_MAX} interim responses`));
  });
}

/**
 * Counts pieces as the parser finds them, because a reader may get many as one; a thousand at a time, so that no long
 * piece at the beginning pays for them.
 */
function boundPieces(response: IncomingMessage): void {
  const push = response.push.bind(response);
  let pieces = 0;
  let bytes = 0;
  response.push = (piece: Buffer | null, encoding) => {
    if (response.destroyed) return false;
    if (piece === null) return push(null);
    bytes += piece.length;
    if (++pieces === RESPONSE_PIECES_COUNTED) {
      if (bytes < RESPONSE_PIECES_BYTES_MIN)
        response.destroy(new Error(`the server sent only ${bytes} bytes in ${pieces} pieces`));
      pieces = 0;
      bytes = 0;
    }
    return push(piece, encoding);
  };
}
