/**
 * Memory for the bytes of segments, used again. A job's segments are read one after the other, a megabyte each, and leave again as
 * fast: new memory for each costs page faults, and makes the collector run to find what has no owner.
 */

const STEP_BYTES = 256 * 1024;
const FREE_MAX = 8;

export class SegmentMemory {
  private readonly free: Buffer[] = [];

  /** At least so many bytes, with anything in them. */
  take(bytes: number): Buffer {
    const at = this.free.findIndex((buffer) => buffer.length >= bytes);
    if (at >= 0) return this.free.splice(at, 1)[0]!;
    return Buffer.allocUnsafeSlow(Math.ceil(bytes / STEP_BYTES) * STEP_BYTES);
  }

  /** Nobody reads it any more: what is next in it overwrites it. */
  giveBack(buffer: Buffer): void {
    if (this.free.length < FREE_MAX) this.free.push(buffer);
  }
}
