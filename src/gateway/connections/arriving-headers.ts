/**
 * Bounds the headers of a head that has not ended, and the trailers of a body. Node passes on each 32 of them (Node
 * 24: 64) as they arrive, and keeps up to 2,000: there is no request yet that could be refused. 6,500 connections with such a head, which
 * need no key, took 540 MB and 1.6 s of one turn of the event loop.
 */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { contain } from "../../base/boundary.ts";
import { HEADERS_OF_A_REQUEST_MAX } from "../../contracts/limits/requests.ts";

/** Where Node's parser has the function for headers that arrive: undocumented, and the same from Node 20 to 24. */
const ON_HEADERS = 1;

type OnHeaders = (this: Parser, headers: string[], url: string) => void;

interface Parser {
  [ON_HEADERS]?: OnHeaders;
  /** Names and values of the head, or of the trailers, that have arrived. Empty once they are whole. */
  _headers: string[];
  socket: ParsedSocket | null;
  /** The last request. */
  incoming: IncomingMessage | null;
}

interface ParsedSocket extends Socket {
  parser?: Parser | null;
}

export interface HeadersBound {
  /** Some headers have arrived. */
  count: () => void;
  /** Ends a connection that has sent too many. */
  refuse: (socket: Socket) => void;
}

const bounds = new WeakMap<Socket, HeadersBound>();
let keep: OnHeaders | undefined;

/** Call this once Node's server has taken the connection. Heads of less than 32 headers cost nothing more. */
export function boundHeaders(socket: ParsedSocket, bound: HeadersBound): void {
  const { parser } = socket;
  const known = parser?.[ON_HEADERS];
  if (!parser || typeof known !== "function") return;
  bounds.set(socket, bound);
  if (known === keepBounded) return;
  keep = known;
  parser[ON_HEADERS] = keepBounded;
}

/** Node uses a parser again, also for clients of this process. So the connection decides whether there is a bound. */
function keepBounded(this: Parser, headers: string[], url: string): void {
  const { socket } = this;
  const bound = socket === null ? undefined : bounds.get(socket);
  if (socket === null || bound === undefined) return keep!.call(this, headers, url);
  bound.count();
  if (socket.destroyed) return;
  const wereTooMany = hasTooMany(this);
  keep!.call(this, headers, url);
  if (wereTooMany || !hasTooMany(this)) return;
  if (this.incoming?.complete === false) return bound.refuse(socket);
  // Later: a head that ends in what Node reads now is refused as a request, with a response that says why.
  setImmediate(() =>
    contain(
      "a head with too many headers",
      () => refuseUnfinished(socket, this, bound),
      () => socket.destroy(),
    ),
  );
}

function refuseUnfinished(socket: ParsedSocket, parser: Parser, bound: HeadersBound): void {
  if (!socket.destroyed && socket.parser === parser && hasTooMany(parser)) bound.refuse(socket);
}

function hasTooMany({ _headers }: Parser): boolean {
  return _headers.length > 2 * HEADERS_OF_A_REQUEST_MAX;
}
