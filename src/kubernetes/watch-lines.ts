/** Splits the stream of a watch into its events: each is one line of JSON. */
import { WATCH_LINE_BYTES_MAX } from "../contracts/limits/kubernetes/api-server.ts";

const NEWLINE = 10;

export class WatchLines {
  private readonly onEvent: (event: unknown) => void;
  private parts: Buffer[] = [];
  private bytes = 0;

  constructor(onEvent: (event: unknown) => void) {
    this.onEvent = onEvent;
  }

  /** Throws if a line is no JSON, or longer than the largest object. */
  add(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      this.keep(chunk.subarray(start, end));
      this.take();
      start = end + 1;
    }
    this.keep(chunk.subarray(start));
  }

  /** The stream has ended. Throws if it was cut off within a line. */
  end(): void {
    if (this.bytes > 0) throw new Error("the watch was cut off within an event");
  }

  private keep(part: Buffer): void {
    if (part.length === 0) return;
    this.bytes += part.length;
    if (this.bytes > WATCH_LINE_BYTES_MAX)
      throw new Error(`an event of the watch is longer than ${WATCH_LINE_BYTES_MAX} bytes`);
    this.parts.push(part);
  }

  private take(): void {
    const line = Buffer.concat(this.parts).toString();
    this.parts = [];
    this.bytes = 0;
    if (line !== "") this.onEvent(JSON.parse(line));
  }
}
