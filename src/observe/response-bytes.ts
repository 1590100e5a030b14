/** Counts what a response sends, with its head. Responses to pipelined requests share a connection, one after another. */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** What each connection had sent when its last response was complete. */
const sentBefore = new WeakMap<Socket, number>();

export class ResponseBytes {
  private readonly socket: Socket;
  private readonly response: ServerResponse;
  private readonly atArrival: number;
  private ended: number | undefined;

  constructor(response: ServerResponse, socket: Socket) {
    this.socket = socket;
    this.response = response;
    this.atArrival = socket.bytesWritten;
    // Before Node's own listener, which begins with the next response.
    response.prependListener("finish", () => {
      this.ended = this.untilNow;
      sentBefore.set(socket, socket.bytesWritten);
    });
  }

  /** The bytes so far. None before its turn comes. */
  get count(): number {
    return this.ended ?? (this.response.headersSent ? this.untilNow : 0);
  }

  private get untilNow(): number {
    return this.socket.bytesWritten - Math.max(this.atArrival, sentBefore.get(this.socket) ?? 0);
  }
}
