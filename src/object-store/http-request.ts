/**
 * Requests that return the bytes as they were sent. If the body breaks off, its stream emits an error. (fetch
 * decompresses.)
 */
import http, { type ClientRequest, type IncomingMessage } from "node:http";
import https from "node:https";

export interface OutgoingRequest {
  /** GET unless given. */
  method?: string;
  headers: Record<string, string>;
  body?: Uint8Array | undefined;
  signal: AbortSignal;
  /** It must not arrive twice. */
  once?: boolean | undefined;
}

/** Repeats the request if the server has closed a kept connection before it was used again. */
export function request(url: string, outgoing: OutgoingRequest): Promise<IncomingMessage> {
  const first = begin(url, outgoing, {});
  return answerTo(first, outgoing).catch((error: NodeJS.ErrnoException) => {
    const isStale = first.reusedSocket && error.code === "ECONNRESET";
    if (!isStale || outgoing.once || outgoing.signal.aborted) throw error;
    return answerTo(begin(url, outgoing, { agent: false }), outgoing);
  });
}

/** `agent: false`: over a connection of its own. */
function begin(
  url: string,
  { method = "GET", headers, body, signal }: OutgoingRequest,
  connection: { agent?: false },
): ClientRequest {
  const { request } = url.startsWith("https:") ? https : http;
  const length = body === undefined ? {} : { "content-length": String(body.length) };
  return request(url, { method, headers: { ...headers, ...length }, signal, ...connection });
}

function answerTo(sent: ClientRequest, { body }: OutgoingRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.on("response", resolve).on("error", reject).end(body);
  });
}
