/** The forms of a streamed response (docs/contract/predictor.md#streams): its headers, and what is around each piece. */
import type { StreamHead } from "../../protocol/messages.ts";

/** Each of `events` has a JSON value. Each of `text events` has a text, which may have several lines. */
export type StreamFormat = "events" | "text events" | "lines" | "text" | "raw";

const UNBUFFERED = ["cache-control", "no-cache", "x-accel-buffering", "no"] as const;
export const CONTENT_TYPES = {
  events: ["content-type", "text/event-stream", ...UNBUFFERED],
  "text events": ["content-type", "text/event-stream", ...UNBUFFERED],
  lines: ["content-type", "application/x-ndjson", ...UNBUFFERED],
  text: ["content-type", "text/plain; charset=utf-8", ...UNBUFFERED],
  raw: [],
} as const satisfies Record<StreamFormat, readonly string[]>;

export const NEWLINE = Buffer.from("\n");
export const DATA = Buffer.from("data: ");
export const EVENT_END = Buffer.from("\n\n");
export const EVENT_HEARTBEAT = Buffer.from(": \n\n");

/** How a worker's pieces are sent. `wantsEvents`: the client asked for server-sent events. */
export function bodyFormat(format: StreamHead["format"], wantsEvents: boolean): StreamFormat {
  if (format === "raw") return "raw";
  if (format === "text") return wantsEvents ? "text events" : "text";
  return wantsEvents ? "events" : "lines";
}
