/**
 * Wall-clock time as the contract writes it: UTC, nine fraction digits, `Z` (interface 2.2).
 * The nanoseconds come from the monotonic clock, anchored once to the wall clock; readings never go back within
 * one process.
 */
const anchorWallNs = BigInt(Date.now()) * 1_000_000n;
const anchorMonotonicNs = process.hrtime.bigint();

/** Nanoseconds since the epoch. */
function nowNs(): bigint {
  return anchorWallNs + (process.hrtime.bigint() - anchorMonotonicNs);
}

/** A timestamp of the shape `YYYY-MM-DDTHH:MM:SS.nnnnnnnnnZ`. */
export function timestamp(ns: bigint = nowNs()): string {
  const millis = Number(ns / 1_000_000n);
  const fraction = (ns % 1_000_000_000n).toString().padStart(9, "0");
  return `${new Date(millis).toISOString().slice(0, 19)}.${fraction}Z`;
}

/** Resolves after `ms` milliseconds; the timer does not keep the process alive. */
export function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
