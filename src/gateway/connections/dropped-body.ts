/**
 * Drops what is left of a body without making a part of each chunk. Node makes a buffer and calls back for each: 64 KiB
 * in chunks of a byte take 25 ms so, and 1 ms without. A client without a key could have that by a request that is
 * refused. Such a connection is read last, and one of these in a turn.
 */
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";

/** Where Node's parser has the functions that it calls: undocumented, and the same from Node 20 to 24. */
const ON_BODY = 3;
const ON_MESSAGE_COMPLETE = 4;
const ON_EXECUTE = 5;

interface Parser {
  incoming: IncomingMessage | null;
  [ON_BODY]?: unknown;
  [ON_MESSAGE_COMPLETE]?: (this: Parser) => unknown;
  /** Called after each read. Missing with TLS, where what is read is counted elsewhere. */
  [ON_EXECUTE]?: ((read: number | Error) => void) | null;
}

/** A request whose connection is read in turns (turns/reading-turns.ts). */
export interface CountedRequest extends IncomingMessage {
  /** Others are read before the connection of this one is read again. */
  yieldTurn?: () => void;
}

/** The body still ends: then the request does, and the next one of the connection is as ever. */
export function dropBody(request: CountedRequest): void {
  const { socket } = request;
  const { parser } = socket as Socket & { parser?: Parser | null };
  if (!parser || parser.incoming !== request || request.complete) return;
  const { [ON_BODY]: onBody, [ON_MESSAGE_COMPLETE]: onComplete, [ON_EXECUTE]: onExecute } = parser;
  if (typeof onBody !== "function" || typeof onComplete !== "function") return;
  const restore = () => {
    socket.off("close", restore);
    parser[ON_BODY] = onBody;
    parser[ON_MESSAGE_COMPLETE] = onComplete;
    if (onExecute) parser[ON_EXECUTE] = onExecute;
  };
  // Node uses the parser for others after these.
  socket.prependListener("close", restore);
  parser[ON_MESSAGE_COMPLETE] = function () {
    restore();
    return onComplete.call(this);
  };
  parser[ON_BODY] = null;
  if (onExecute)
    parser[ON_EXECUTE] = (read) => {
      onExecute(read);
      request.yieldTurn?.();
    };
}
