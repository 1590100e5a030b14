/**
 * What one connection has asked for and was not answered yet: how much it may be, and that all of it ends with the connection. Node takes
 * every request that a client sends ahead, and tells only the answer whose turn it is that the client has left.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { REQUESTS_OF_A_CONNECTION_MAX } from "../contracts/limits.ts";

export class AskedAtOnce {
  private readonly asked = new WeakMap<Socket, Set<ServerResponse>>();

  /** False where the connection has asked for too much: it is closed. */
  take({ socket }: IncomingMessage, response: ServerResponse): boolean {
    if (socket.destroyed) return false;
    const asked = this.asked.get(socket) ?? this.follow(socket);
    if (asked.size >= REQUESTS_OF_A_CONNECTION_MAX) {
      socket.destroy();
      return false;
    }
    asked.add(response);
    response.once("close", () => asked.delete(response));
    return true;
  }

  private follow(socket: Socket): Set<ServerResponse> {
    const asked = new Set<ServerResponse>();
    this.asked.set(socket, asked);
    // A moment later, when Node has told the one whose turn it was.
    socket.once("close", () => setImmediate(() => abandon(asked)));
    return asked;
  }
}

function abandon(asked: Set<ServerResponse>): void {
  for (const response of asked) {
    response.destroy();
    response.emit("close");
  }
}
