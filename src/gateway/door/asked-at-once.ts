/**
 * Bounds the requests that one connection sends ahead of their responses, and ends all of them with the connection.
 * Node accepts every request that a client sends ahead. When the client leaves, Node emits "close" only on the response
 * whose turn it is.
 */
import { type IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { inBackground } from "../../base/boundary.ts";
import { TimeSlices } from "../../base/loop/turns.ts";
import { SLICE_MS } from "../../contracts/limits/event-loop.ts";
import { REQUESTS_OF_A_CONNECTION_MAX } from "../../contracts/limits/requests.ts";
import { parseNoMore } from "../connections/parse-no-more.ts";
import { RESPONSE_TURN } from "../connections/response-turn.ts";

/** Of all connections. */
const SLICES = new TimeSlices(SLICE_MS);

/** On the hot path: a client that waits for each response costs one check of its last response, and no listener. */
interface Asked {
  /** The latest response; undefined once it is finished, because it holds the head of its request. */
  last: ServerResponse | undefined;
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
    else if (asked.last?.writableFinished === false)
      return this.takeAhead(socket, asked, asked.last, response);
    else {
      asked.last = response;
      asked.isUsed = true;
    }
    return true;
  }

  /** A response of the connection is finished. On the hot path. */
  finish(socket: Socket, response: ServerResponse): void {
    const asked = this.asked.get(socket);
    if (asked?.last === response) asked.last = undefined;
  }

  /** What the connection does, and did since this was last asked. */
  use(socket: Socket): ConnectionUse {
    const asked = this.asked.get(socket);
    if (asked === undefined) return "new";
    const { last, isUsed } = asked;
    asked.isUsed = false;
    if (last?.writableFinished === false) return waitsForClient(last, asked) ? "slow" : "busy";
    return isUsed ? "used" : "idle";
  }

  private takeAhead(socket: Socket, asked: Asked, last: ServerResponse, response: ServerResponse): boolean {
    asked.earlier ??= new Set();
    const { earlier } = asked;
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

/** Judges the response whose turn it is: the others cannot be taken yet. */
function waitsForClient(last: ServerResponse, { earlier }: Asked): boolean {
  const [first = last] = earlier ?? [];
  return !first.req.complete || first.writableLength > 0;
}

function abandon({ last, earlier }: Asked): void {
  for (const response of [...(earlier ?? []), last]) {
    // Node has already emitted "close" on this one, and does so on no other.
    if (response === undefined || response.closed) continue;
    response.destroy();
    response.emit("close");
  }
}

/**
 * The class of responses of a listener. Node assigns the connection to each when its turn has come, and detaches it when
 * it is finished.
 */
export function followedResponse(asked: AskedAtOnce): typeof ServerResponse {
  return class<Request extends IncomingMessage> extends ServerResponse<Request> {
    override assignSocket(socket: Socket): void {
      super.assignSocket(socket);
      // Most have their turn at once, and have no head yet.
      if (this.headersSent) this.emit(RESPONSE_TURN);
    }

    /**
     * Node's own step to the next response: it is the last act of the one before, so that of a thousand connections
     * whose first response has waited would follow each other in one turn of the event loop.
     */
    _flush(): void {
      if (!this.writableEnded || !SLICES.isOver) return flush(this);
      inBackground(SLICES.rest().then(() => flush(this)));
    }

    override end(...given: unknown[]): this {
      super.end(...(given as []));
      // It may wait long for its turn: the head of its request holds up to 40 KB.
      if (this.socket === null) dropHead(this.req);
      return this;
    }

    override detachSocket(socket: Socket): void {
      super.detachSocket(socket);
      asked.finish(socket, this);
    }
  } as typeof ServerResponse;
}

/** Sends what a response has, if its turn has come and its connection is still there. */
function flush(response: ServerResponse): void {
  (ServerResponse.prototype as ServerResponse & { _flush(): void })._flush.call(response);
}

/** Nobody reads the head of a request after the end of its response. */
function dropHead(request: IncomingMessage): void {
  request.rawHeaders = [];
  request.headers = {};
  request.url = "";
}
