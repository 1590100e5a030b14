/**
 * Reusable memory for the bytes of segments. A job reads its segments in sequence, a megabyte each, and drops them as
 * fast. New memory for each would cost page faults and garbage collections.
 */

const STEP_BYTES = 256 * 1024;
/** Each of the many jobs that run at once may keep so many: what one reads, and what it lets go of meanwhile ... */
const FREE_MAX = 3;
/** ... of usual segments. Lines may have megabytes of white space. */
const FREE_BYTES_MAX = 2 * 1024 * 1024;

export class SegmentMemory {
  private readonly free: Buffer[] = [];

  /** Returns at least `bytes` bytes, with undefined content. */
  take(bytes: number): Buffer {
    const at = this.free.findIndex((buffer) => buffer.length >= bytes);
    if (at >= 0) return this.free.splice(at, 1)[0]!;
    return Buffer.allocUnsafeSlow(Math.ceil(bytes / STEP_BYTES) * STEP_BYTES);
  }

  /** The caller must not read the buffer any more: its next user overwrites it. */
  giveBack(buffer: Buffer): void {
    if (buffer.length > 0 && this.free.length < FREE_MAX && buffer.length <= FREE_BYTES_MAX)
      this.free.push(buffer);
  }
}
