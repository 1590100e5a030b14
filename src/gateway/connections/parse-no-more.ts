/** Stops the parser of a connection whose further requests get no response. */
import type { Socket } from "node:net";

/** Tells Node's parser that the rest is not HTTP: it reads nothing after such a request. */
const PARSE_NO_MORE = 2;

/** A socket with the parser of Node's HTTP server. It is undocumented, and the same from Node 20 to 24. */
interface ParsedSocket extends Socket {
  parser?: { onIncoming?: (() => number) | null } | null;
}

/**
 * Node reads 64 KiB at once and makes a request of everything in them, although the connection is closed, or closes
 * after this response. Handling 1,500 such requests takes 70 ms, and no other client is served meanwhile. The body of
 * the last request is still read.
 */
export function parseNoMore(socket: ParsedSocket): void {
  if (socket.parser?.onIncoming) socket.parser.onIncoming = () => PARSE_NO_MORE;
}
