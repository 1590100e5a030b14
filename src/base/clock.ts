/**
 * The one place that reads the wall clock (docs/decisions/0015-clocks.md). Records and expiry dates are wall time.
 * Durations and deadlines of a running process are monotonic: `performance.now()`. No step of the wall clock moves it,
 * and it stands still while the machine is suspended.
 */
/**
 * If the clocks differ by more, the wall clock was set or the machine was suspended. A preempted reading differs by
 * less.
 */
const STEP_NS = 100_000_000n;

/** Milliseconds since the epoch, for records and expiry dates; never for durations. */
export function wallMs(): number {
  return Date.now();
}

/**
 * The wall clock in nanoseconds. It is anchored to the wall clock once, and counted on by the monotonic clock. The
 * first reading after a step anchors it again. Between steps readings never go back; after the clock was set back they
 * do.
 */
export class WallClock {
  private readonly wallMs: () => number;
  private readonly monotonicNs: () => bigint;
  private anchorWallNs = 0n;
  private anchorMonotonicNs = 0n;

  constructor(wall: () => number = wallMs, monotonicNs: () => bigint = process.hrtime.bigint) {
    this.wallMs = wall;
    this.monotonicNs = monotonicNs;
  }

  nowNs(): bigint {
    const monotonicNs = this.monotonicNs();
    const wallNs = BigInt(this.wallMs()) * 1_000_000n;
    const countedNs = this.anchorWallNs + (monotonicNs - this.anchorMonotonicNs);
    const apartNs = wallNs - countedNs;
    if (apartNs <= STEP_NS && apartNs >= -STEP_NS) return countedNs;
    this.anchorWallNs = wallNs;
    this.anchorMonotonicNs = monotonicNs;
    return wallNs;
  }
}

const clock = new WallClock();

/** A timestamp of the shape `YYYY-MM-DDTHH:MM:SS.nnnnnnnnnZ`. */
export function timestamp(ns: bigint = clock.nowNs()): string {
  const millis = Number(ns / 1_000_000n);
  const fraction = (ns % 1_000_000_000n).toString().padStart(9, "0");
  return `${new Date(millis).toISOString().slice(0, 19)}.${fraction}Z`;
}

/** `time`, or the next nanosecond after `before` if the clock was set back between them. */
export function notBefore(time: string, before: string | undefined): string {
  if (before === undefined || time > before) return time;
  const seconds = BigInt(Date.parse(`${before.slice(0, 19)}Z`)) * 1_000_000n;
  return timestamp(seconds + BigInt(before.slice(20, 29)) + 1n);
}

/** Resolves after `ms` milliseconds; the timer does not keep the process alive. */
export function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
