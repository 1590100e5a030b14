/**
 * The TLS handshakes under way on one listener. Whoever sends a first message and no second costs no more than a key's operation, and holds
 * 60 KB: beyond a number of them the oldest goes for a new one. It is not seconds old only where nobody waits for it any more.
 */
import type { Server as TlsServer } from "node:https";
import type { Socket } from "node:net";
import { HANDSHAKES_MAX } from "../contracts/limits.ts";

export function boundHandshakes(server: TlsServer): void {
  // By the client's address and port: a TLS socket does not tell which connection it is on.
  const underWay = new Map<string, Socket>();
  server.prependListener("connection", (socket: Socket) => {
    const client = nameOf(socket);
    underWay.set(client, socket);
    socket.once("close", () => {
      if (underWay.get(client) === socket) underWay.delete(client);
    });
    if (underWay.size <= HANDSHAKES_MAX) return;
    const [oldest] = underWay.values();
    oldest!.destroy();
  });
  server.prependListener("secureConnection", (socket) => underWay.delete(nameOf(socket)));
}

function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
