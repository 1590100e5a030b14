/**
 * Requests that ask for another protocol (`Connection: upgrade`), which this server ignores. What comes in the same read
 * after such a request is taken for the other protocol: Node drops it. So the connection ends after the response, and the
 * client knows that it must send again what it had sent ahead. Clients that send nothing ahead, as Java's do with
 * `Upgrade: h2c`, keep their connection.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { parseNoMore } from "./parse-no-more.ts";

/** Where Node's parser has the function that it calls after each read: undocumented, and the same from Node 20 to 24. */
const ON_EXECUTE = 5;

/** `read`: how many bytes were parsed, or an error. */
type OnExecute = (read: number | Error) => void;

interface Parser {
  [ON_EXECUTE]?: OnExecute | null;
  /** A copy of what was read. */
  getCurrentBuffer?: () => Buffer | undefined;
}

/** Call with each request. */
export function endIfRestIsDropped(request: IncomingMessage, response: ServerResponse): void {
  if (request.headers.upgrade === undefined) return;
  const { socket } = request;
  const { parser } = socket as Socket & { parser?: Parser | null };
  const known = parser?.[ON_EXECUTE];
  if (!parser || typeof known !== "function") return;
  parser[ON_EXECUTE] = (read) => {
    if (request.complete) {
      parser[ON_EXECUTE] = known;
      if (read !== parser.getCurrentBuffer?.()?.length) endAfter(socket, response);
    }
    known(read);
  };
}

function endAfter(socket: Socket, response: ServerResponse): void {
  parseNoMore(socket);
  if (!response.headersSent) response.setHeader("connection", "close");
  const end = () => socket.destroySoon();
  if (response.writableFinished) end();
  else response.once("finish", end);
}
