/**
 * Ends connections whose request comes too late, a few in each turn of the event loop: those that came together are late
 * together, and closing 10,000 takes half a second. Node itself does so in one turn, unless this listens. What Node
 * answers stays the same, but for the id of the response.
 */
import type { Server } from "node:http";
import type { Duplex } from "node:stream";
import { FewEachTurn, type NextTurn } from "../../base/loop/turns.ts";
import { LATE_AT_ONCE_MAX } from "../../contracts/limits/requests.ts";
import { newRequestId } from "../connections/request-ids.ts";

/** A socket of Node's HTTP server, with the response in progress. */
interface HttpSocket extends Duplex {
  _httpMessage?: { headersSent: boolean } | null;
}

const STATUS_OF: Record<string, string> = {
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "413 Payload Too Large",
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
};

export function endLateInTurns(server: Pick<Server, "on">, nextTurn?: NextTurn): void {
  const late = new FewEachTurn("a late connection", LATE_AT_ONCE_MAX, nextTurn);
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => {
    const end = () => endAfter(error, socket);
    if (error.code === "ERR_HTTP_REQUEST_TIMEOUT") late.add(end);
    else end();
  });
}

/** Ends a connection that sends more headers than a request may have. */
export function endTooManyHeaders(socket: Duplex): void {
  endAfter(Object.assign(new Error("too many headers"), { code: "HPE_HEADER_OVERFLOW" }), socket);
}

/** As Node does: with a response, unless another one has begun. */
function endAfter(error: NodeJS.ErrnoException, socket: HttpSocket): void {
  if (socket.destroyed) return;
  if (socket.writable && socket._httpMessage?.headersSent !== true) {
    const status = STATUS_OF[error.code ?? ""] ?? "400 Bad Request";
    const headers = `Connection: close\r\nX-Request-Id: ${newRequestId()}`;
    socket.write(`HTTP/1.1 ${status}\r\n${headers}\r\n\r\n`, "latin1");
  }
  socket.destroy(error);
}
