/**
 * A request whose body has few parts, although its sender may make chunks of one byte. Node makes a part of each: 11,000
 * of one read, which take 300 bytes of memory each while they wait, and some microseconds in each place that they pass.
 * Here the small ones of a turn of the event loop become one part of up to 8 KiB, or a few.
 */
import { IncomingMessage } from "node:http";
import { keepPart, SMALL_PART_BYTES } from "./body-parts.ts";

/** Beyond that they do not wait for the turn's end: the request may have to stop the reading. */
const JOINED_BYTES_MAX = 16 * 1024;

export class JoinedRequest extends IncomingMessage {
  /** Parts that were not pushed yet; the last one may grow in `block`. */
  private joining: Buffer[] | undefined;
  private block: Buffer | undefined;
  /** Total bytes of `joining`. */
  private bytes = 0;

  /** On the hot path: a body of one part is neither copied nor delayed. */
  override push(part: unknown, encoding?: BufferEncoding): boolean {
    if (Buffer.isBuffer(part) && part.length < SMALL_PART_BYTES) return this.join(part);
    this.pushJoined();
    return super.push(part, encoding);
  }

  private join(part: Buffer): boolean {
    this.bytes += part.length;
    if (this.joining !== undefined)
      this.block = keepPart(this.joining, part, this.block) as Buffer | undefined;
    else {
      this.joining = [part];
      // The end of a whole body comes next.
      if (this.headers["content-length"] !== String(part.length)) setImmediate(pushLater, this);
    }
    return this.bytes < JOINED_BYTES_MAX || this.pushJoined();
  }

  /** False if Node must not read on for now. */
  pushJoined(): boolean {
    const { joining = [] } = this;
    this.joining = undefined;
    this.block = undefined;
    this.bytes = 0;
    let wantsMore = true;
    if (!this.destroyed) for (const part of joining) wantsMore = super.push(part);
    return wantsMore;
  }
}

/** As Node's parser does with a part: it pauses the connection if the request has no space for more. */
function pushLater(request: JoinedRequest): void {
  if (!request.pushJoined()) request.socket.pause();
}
