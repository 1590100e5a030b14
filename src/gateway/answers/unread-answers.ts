/**
 * Bounds the complete responses that clients do not read: the socket has not taken their bytes, so this process holds
 * them. The connections of the oldest ones are closed first. One instance per process.
 */
import type { ServerResponse } from "node:http";
import { UNREAD_ANSWERS_BYTES_MAX } from "../../contracts/limits/responses.ts";

export class UnreadAnswers {
  private readonly most: number;
  private held = 0;
  /** The bytes that were left when each was complete; the oldest first. */
  private readonly unread = new Map<ServerResponse, number>();

  constructor(most: number) {
    this.most = most;
  }

  /** Called after the end of a response. On the hot path: if the socket has taken everything, this is one check. */
  add(response: ServerResponse): void {
    const bytes = response.writableLength;
    if (bytes === 0 || response.destroyed || this.unread.has(response)) return;
    this.unread.set(response, bytes);
    this.held += bytes;
    response.once("close", () => this.forget(response));
    if (this.held > this.most) this.closeOldest();
  }

  /** The newest one stays, however large it is. */
  private closeOldest(): void {
    for (const response of this.unread.keys()) {
      if (this.held <= this.most || this.unread.size === 1) return;
      this.forget(response);
      // Not the response: if it is not its turn yet, it has no socket.
      response.req.socket.destroy();
    }
  }

  private forget(response: ServerResponse): void {
    this.held -= this.unread.get(response) ?? 0;
    this.unread.delete(response);
  }
}

export const unreadAnswers = new UnreadAnswers(UNREAD_ANSWERS_BYTES_MAX);
