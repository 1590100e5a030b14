/**
 * Responses without an end of their own (events of a job, logs that are followed), and long lists. Each ends within a
 * second after its key loses its permission. The number per key is limited: a stream polls several times a second, and
 * a list keeps its current part in memory.
 */
import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import type { Keys } from "../../access/keys.ts";
import { ServiceError } from "../../contracts/errors.ts";
import {
  LISTS_MAX,
  LISTS_OF_A_KEY_MAX,
  STREAM_POLL_MS,
  STREAMS_MAX,
  STREAMS_OF_A_KEY_MAX,
} from "../../contracts/limits/responses.ts";
import { askedBy, isStillOpen, senderOf } from "../requests/authorization.ts";
import { type Chunks, streamText } from "./stream-text.ts";

/** How many may be open, and the words of the error if there are more. */
interface Most {
  ofAKey: number;
  ofAll: number;
  what: string;
  cure: string;
}

const STREAMS: Most = {
  ofAKey: STREAMS_OF_A_KEY_MAX,
  ofAll: STREAMS_MAX,
  what: "streams",
  cure: "close one, or request it without following",
};

/** Lists of failures, and other responses that are long and end: lists of jobs and APIs, unfollowed logs and results, verifications, dry runs. */
export const LISTS: Most = {
  ofAKey: LISTS_OF_A_KEY_MAX,
  ofAll: LISTS_MAX,
  what: "lists of failures, jobs or APIs, logs, results, verifications or dry runs",
  cure: "read one to its end first, or close it",
};

interface OpenStream {
  isAllowed: () => boolean;
  /** A poll found that it is no longer permitted. It may report that in its own form until the next poll. */
  isEnding: boolean;
  /** Called when `isEnding` becomes true. */
  onEnding: () => void;
  end: () => void;
}

/**
 * Whether a key that has `mine` open may open another one, if `all` are open. A key may have twice as many as stay free
 * for others, so that a few keys cannot use up all.
 */
export function mayOpen(
  mine: number,
  all: number,
  { ofAKey, ofAll }: Pick<Most, "ofAKey" | "ofAll">,
): boolean {
  return mine < ofAKey && mine < 2 * (ofAll - all);
}

/** Callers without a key share one limit. */
const ANYBODY = "-";

export class OpenStreams {
  private readonly keys: Keys;
  private readonly most: Most;
  private readonly byKey = new Map<string, Set<OpenStream>>();
  private readonly byRequest = new WeakMap<Context, OpenStream>();
  private timer: NodeJS.Timeout | undefined;

  constructor(keys: Keys, most = STREAMS) {
    this.keys = keys;
    this.most = most;
  }

  /** Responds with `chunks`. Throws `rate_limited` if the request's key has too many streams. */
  answer(c: Context, chunks: Chunks, type: string, headers: Record<string, string> = {}): Response {
    const { outgoing } = c.env as HttpBindings;
    const owner = askedBy(c, this.keys) ?? ANYBODY;
    const streams = this.byKey.get(owner) ?? new Set();
    this.assertFew(owner, streams);
    const isAllowed = () => this.isAllowed(c);
    const stream = { isAllowed, isEnding: false, onEnding: () => {}, end: () => outgoing.destroy() };
    const streamed = () => streamText(c, chunks, type, headers, senderOf(c, this.keys));
    // A client that has already disconnected sends no more "close" event.
    if (outgoing.destroyed) return streamed();
    this.byKey.set(owner, streams.add(stream));
    this.byRequest.set(c, stream);
    outgoing.once("close", () => this.forget(owner, stream));
    this.timer ??= setInterval(() => this.look(), STREAM_POLL_MS).unref();
    return streamed();
  }

  /** Whether the stream's request is still permitted. */
  isAllowed(c: Context): boolean {
    return isStillOpen(c);
  }

  /** Calls `act` once the stream is no longer permitted, for one that does not look at `isAllowed` itself. */
  whenEnding(c: Context, act: () => void): void {
    const stream = this.byRequest.get(c);
    if (stream !== undefined) stream.onEnding = act;
  }

  private assertFew(owner: string, streams: ReadonlySet<OpenStream>): void {
    const all = [...this.byKey.values()].reduce((sum, { size }) => sum + size, 0);
    const { ofAKey, ofAll, what, cure } = this.most;
    if (mayOpen(streams.size, all, this.most)) return;
    const who = owner === ANYBODY ? "callers without a key have" : `${owner} has`;
    const message =
      streams.size < ofAKey
        ? `${all} of the ${ofAll} ${what} that this server allows are open; ${cure}`
        : `${who} ${ofAKey} ${what} open, which is the limit; ${cure}`;
    throw new ServiceError("rate_limited", message, { retryAfterS: 1 });
  }

  private look(): void {
    for (const streams of this.byKey.values())
      for (const stream of streams) {
        if (stream.isEnding) stream.end();
        stream.isEnding = !stream.isAllowed();
        if (stream.isEnding) stream.onEnding();
      }
  }

  private forget(owner: string, stream: OpenStream): void {
    const streams = this.byKey.get(owner);
    streams?.delete(stream);
    if (streams?.size === 0) this.byKey.delete(owner);
    if (this.byKey.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }
}
