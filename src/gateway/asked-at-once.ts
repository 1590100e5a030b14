/**
 * What one connection has asked for and was not answered yet: how much it may be, and that all of it ends with the connection. Node takes
 * every request that a client sends ahead, and tells only the answer whose turn it is that the client has left.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { REQUESTS_OF_A_CONNECTION_MAX } from "../contracts/limits.ts";

/** What Node's parser takes for "this is no HTTP any more": it reads nothing behind such a request. */
const PARSE_NO_MORE = 2;

/** A socket with the parser that Node's HTTP server gave it: of no documentation, the same from Node 20 to 24. */
interface ParsedSocket extends Socket {
  parser?: { onIncoming?: (() => number) | null } | null;
}

/** Hot path: a client that waits for each answer costs a look at its last one, and no listener. */
interface Asked {
  last: ServerResponse;
  /** Those before it that were not answered when the next request came. */
  earlier: Set<ServerResponse> | undefined;
}

export class AskedAtOnce {
  private readonly asked = new WeakMap<Socket, Asked>();

  /** False where the connection has asked for too much: it is closed. */
  take({ socket }: IncomingMessage, response: ServerResponse): boolean {
    if (socket.destroyed) return false;
    const asked = this.asked.get(socket);
    if (asked === undefined) this.follow(socket, response);
    else if (!asked.last.writableFinished) return this.takeAhead(socket, asked, response);
    else asked.last = response;
    return true;
  }

  private takeAhead(socket: Socket, asked: Asked, response: ServerResponse): boolean {
    asked.earlier ??= new Set();
    const { last, earlier } = asked;
    if (earlier.size + 1 >= REQUESTS_OF_A_CONNECTION_MAX) {
      close(socket);
      return false;
    }
    earlier.add(last);
    last.once("close", () => earlier.delete(last));
    asked.last = response;
    return true;
  }

  private follow(socket: Socket, last: ServerResponse): void {
    const asked: Asked = { last, earlier: undefined };
    this.asked.set(socket, asked);
    // A moment later, when Node has told the one whose turn it was.
    socket.once("close", () => setImmediate(() => abandon(asked)));
  }
}

/**
 * Node reads 64 KiB at once and makes a request of all that is in them, though the connection is closed: 1,500 take 70 ms, in which
 * nobody else is answered.
 */
function close(socket: ParsedSocket): void {
  if (socket.parser?.onIncoming) socket.parser.onIncoming = () => PARSE_NO_MORE;
  socket.destroy();
}

function abandon({ last, earlier }: Asked): void {
  for (const response of [...(earlier ?? []), last]) {
    // Node has told it, or will tell nobody.
    if (response.closed) continue;
    response.destroy();
    response.emit("close");
  }
}
