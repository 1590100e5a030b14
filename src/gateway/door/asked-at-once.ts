/**
 * Bounds the requests that one connection sends ahead of their responses, and ends all of them with the connection.
 * Node accepts every request that a client sends ahead. When the client leaves, Node emits "close" only on the response
 * whose turn it is.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { REQUESTS_OF_A_CONNECTION_MAX } from "../../contracts/limits/requests.ts";

/** Tells Node's parser that the rest is not HTTP: it reads nothing after such a request. */
const PARSE_NO_MORE = 2;

/** A socket with the parser of Node's HTTP server. It is undocumented, and the same from Node 20 to 24. */
interface ParsedSocket extends Socket {
  parser?: { onIncoming?: (() => number) | null } | null;
}

/** On the hot path: a client that waits for each response costs one check of its last response, and no listener. */
interface Asked {
  last: ServerResponse;
  /** Responses before `last` that were unfinished when the next request came. */
  earlier: Set<ServerResponse> | undefined;
  /** Whether a request came since the last `use`. */
  isUsed: boolean;
}

/**
 * What a connection does: it has a request in progress, or had one since the question before, or nothing. "slow": the
 * request waits for its client, which has yet to send the rest of the body or to take the response. "new": it had no
 * request yet.
 */
export type ConnectionUse = "busy" | "slow" | "used" | "idle" | "new";

export class AskedAtOnce {
  private readonly asked = new WeakMap<Socket, Asked>();

  /** False if the connection has sent too many requests; it is then closed. */
  take({ socket }: IncomingMessage, response: ServerResponse): boolean {
    if (socket.destroyed) return false;
    const asked = this.asked.get(socket);
    if (asked === undefined) this.follow(socket, response);
    else if (!asked.last.writableFinished) return this.takeAhead(socket, asked, response);
    else {
      asked.last = response;
      asked.isUsed = true;
    }
    return true;
  }

  /** What the connection does, and did since this was last asked. */
  use(socket: Socket): ConnectionUse {
    const asked = this.asked.get(socket);
    if (asked === undefined) return "new";
    const { last, isUsed } = asked;
    asked.isUsed = false;
    if (!last.writableFinished) return waitsForClient(asked) ? "slow" : "busy";
    return isUsed ? "used" : "idle";
  }

  private takeAhead(socket: Socket, asked: Asked, response: ServerResponse): boolean {
    asked.earlier ??= new Set();
    const { last, earlier } = asked;
    if (earlier.size + 1 >= REQUESTS_OF_A_CONNECTION_MAX) {
      parseNoMore(socket);
      socket.destroy();
      return false;
    }
    earlier.add(last);
    last.once("close", () => earlier.delete(last));
    asked.last = response;
    asked.isUsed = true;
    return true;
  }

  private follow(socket: Socket, last: ServerResponse): void {
    const asked: Asked = { last, earlier: undefined, isUsed: true };
    this.asked.set(socket, asked);
    // Later, after Node has emitted "close" on the response whose turn it was.
    socket.once("close", () => setImmediate(() => abandon(asked)));
  }
}

/**
 * Node reads 64 KiB at once and makes a request of everything in them, although the connection is closed. Handling
 * 1,500 such requests takes 70 ms, and no other client is served meanwhile. So the parser is stopped too.
 */
export function parseNoMore(socket: ParsedSocket): void {
  if (socket.parser?.onIncoming) socket.parser.onIncoming = () => PARSE_NO_MORE;
}

/** Judges the response whose turn it is: the others cannot be taken yet. */
function waitsForClient({ last, earlier }: Asked): boolean {
  const [first = last] = earlier ?? [];
  return !first.req.complete || first.writableLength > 0;
}

function abandon({ last, earlier }: Asked): void {
  for (const response of [...(earlier ?? []), last]) {
    // Node has already emitted "close" on this one, and does so on no other.
    if (response.closed) continue;
    response.destroy();
    response.emit("close");
  }
}
