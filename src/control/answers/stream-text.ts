/** Responses of text: streamed as it is produced, or JSON in one piece. */
import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import { reportFault } from "../../base/boundary.ts";
import { FairTurns } from "../../base/fair/fair-turns.ts";
import { SLICE_MS } from "../../contracts/limits/event-loop.ts";
import { whenClosed } from "../requests/connection.ts";

/**
 * All responses that are streamed take turns: one slice of one response in each turn of the event loop. Otherwise sixty
 * responses at once would block the event loop for sixty slices at a time. Each sender in turn gets the next slice,
 * however many responses another one reads.
 */
const TURNS = new FairTurns(Number.POSITIVE_INFINITY);
const END = { value: "", done: true } as const;

/**
 * Text, or bytes of text in UTF-8. Empty ones come from long work without a result yet: others have their turn then, and
 * the work ends if the client has left.
 */
export type Chunks = AsyncGenerator<string> | AsyncGenerator<Uint8Array>;

/** Gets the error that cut a response off: its status is sent already. */
export type OnCut = (error: unknown) => void;
type WithOnCut = Context<{ Variables: { onCut?: OnCut } }>;

/** Who hears of errors in the middle of this response. Without it they are reported as faults. */
export function setOnCut(c: Context, onCut: OnCut): void {
  (c as WithOnCut).set("onCut", onCut);
}

/**
 * Streams text to `sender` as it is produced, and stops whenever the client disconnects. hono's bridge cancels the stream only if
 * the client disconnects during a write, so this watches the connection itself.
 */
export function streamText(
  c: Context,
  chunks: Chunks,
  type: string,
  headers: Record<string, string> = {},
  sender = "",
): Response {
  const giveUp = () => {
    chunks.return(undefined).catch(() => {});
  };
  whenClosed(c, giveUp);
  const encoder = new TextEncoder();
  let endMs = 0;
  const source = {
    async pull(controller: ReadableStreamDefaultController<Uint8Array>) {
      for (;;) {
        if (performance.now() >= endMs) {
          await nextSlice(sender);
          endMs = performance.now() + SLICE_MS;
        }
        const { value, done } = await chunks.next().catch((error: unknown) => {
          cutOff(c, error);
          return END;
        });
        if (done) return controller.close();
        if (value.length > 0)
          return controller.enqueue(typeof value === "string" ? encoder.encode(value) : value);
      }
    },
    cancel: giveUp,
  };
  // Nothing is read ahead, because a client that does not read holds it.
  const body = new ReadableStream<Uint8Array>(source, { highWaterMark: 0 });
  return new Response(body, { headers: { "content-type": type, ...headers } });
}

async function nextSlice(sender: string): Promise<void> {
  await TURNS.take(sender);
  await new Promise((resolve) => setImmediate(resolve));
  TURNS.end();
}

/** Closes the connection, because nothing else tells a client that the response is not whole. */
function cutOff(c: Context, error: unknown): void {
  const { outgoing } = c.env as HttpBindings;
  // The client has left, and that ended the work.
  if (outgoing.destroyed) return;
  const report: OnCut = (thrown) => reportFault(thrown, "a streamed response");
  const { onCut = report } = (c as WithOnCut).var;
  onCut(error);
  outgoing.destroy();
}

export function jsonText(text: string, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(text, { status, headers: { "content-type": "application/json", ...headers } });
}
