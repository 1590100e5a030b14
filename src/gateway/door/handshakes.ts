/**
 * Bounds the TLS handshakes under way on one listener. Each holds 60 KB, and a client that never finishes one needs no
 * key. A new handshake closes the oldest one: a client that means to connect finishes in less than a second.
 */
import type { Server as TlsServer } from "node:https";
import type { Socket } from "node:net";
import { HANDSHAKES_MAX } from "../../contracts/limits/requests.ts";

export function boundHandshakes(server: TlsServer): void {
  // By the client's address and port, because a TLS socket does not show which connection it uses.
  const underWay = new Map<string, Socket>();
  server.prependListener("connection", (socket: Socket) => {
    const client = nameOf(socket);
    underWay.set(client, socket);
    socket.once("close", () => {
      if (underWay.get(client) === socket) underWay.delete(client);
    });
    if (underWay.size > HANDSHAKES_MAX) closeOldest(underWay);
  });
  server.prependListener("secureConnection", (socket) => underWay.delete(nameOf(socket)));
}

/** Forgets the connection at once: it closes a turn later, and many connections come in one turn. */
function closeOldest(underWay: Map<string, Socket>): void {
  const [oldest] = underWay;
  if (oldest === undefined) return;
  const [client, socket] = oldest;
  underWay.delete(client);
  socket.destroy();
}

function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
