/**
 * Answers that go on until somebody ends them: events of a job, logs that are followed. Each ends within a second once the key that opened it opens
 * nothing any more, and nobody has more of them than a client needs: each looks for news several times a second.
 */
import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import type { Keys } from "../access/keys.ts";
import { ServiceError } from "../contracts/errors.ts";
import { STREAM_LOOK_MS, STREAMS_MAX, STREAMS_OF_A_KEY_MAX } from "../contracts/limits.ts";
import { askedBy, isStillOpen, streamText } from "./http.ts";

interface OpenStream {
  isAllowed: () => boolean;
  /** It was found without leave once: it may say so in its own form until the next look. */
  isEnding: boolean;
  end: () => void;
}

/** Whoever needs no key: they share one number. */
const ANYBODY = "-";

export class OpenStreams {
  private readonly keys: Keys;
  private readonly byKey = new Map<string, Set<OpenStream>>();
  private timer: NodeJS.Timeout | undefined;

  constructor(keys: Keys) {
    this.keys = keys;
  }

  /** `chunks` as an answer. Throws `rate_limited` where the request's key has too many of them. */
  answer(
    c: Context,
    chunks: AsyncGenerator<string>,
    type: string,
    headers: Record<string, string> = {},
  ): Response {
    const { outgoing } = c.env as HttpBindings;
    const owner = askedBy(c, this.keys) ?? ANYBODY;
    const streams = this.byKey.get(owner) ?? new Set();
    this.assertFew(owner, streams);
    const stream = { isAllowed: () => this.isAllowed(c), isEnding: false, end: () => outgoing.destroy() };
    // A client that has left already closes nothing any more.
    if (outgoing.destroyed) return streamText(c, chunks, type, headers);
    this.byKey.set(owner, streams.add(stream));
    outgoing.once("close", () => this.forget(owner, stream));
    this.timer ??= setInterval(() => this.look(), STREAM_LOOK_MS).unref();
    return streamText(c, chunks, type, headers);
  }

  /** Whether what the stream was asked with still opens anything. */
  isAllowed(c: Context): boolean {
    return isStillOpen(c);
  }

  private assertFew(owner: string, streams: ReadonlySet<OpenStream>): void {
    const all = [...this.byKey.values()].reduce((sum, { size }) => sum + size, 0);
    if (streams.size < STREAMS_OF_A_KEY_MAX && all < STREAMS_MAX) return;
    const who = owner === ANYBODY ? "callers without a key have" : `${owner} has`;
    const message =
      streams.size < STREAMS_OF_A_KEY_MAX
        ? `${STREAMS_MAX} streams are open, which is the limit of this server; close one, or ask without following`
        : `${who} ${STREAMS_OF_A_KEY_MAX} streams open, which is the limit; close one, or ask without following`;
    throw new ServiceError("rate_limited", message, { retryAfterS: 1 });
  }

  private look(): void {
    for (const streams of this.byKey.values())
      for (const stream of streams) {
        if (stream.isEnding) stream.end();
        stream.isEnding = !stream.isAllowed();
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
