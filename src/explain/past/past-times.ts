/**
 * Times in the texts of an explanation: UTC to the minute, in a form that the command line and the dashboard find and show
 * in local time. Pure.
 */

/** `2026-11-28T14:05Z`, the start of the minute. */
export function minute(timeS: number): string {
  return `${new Date(Math.floor(timeS / 60) * 60_000).toISOString().slice(0, 16)}Z`;
}

/** From the start of the first step to the end of the last. */
export function period({ fromS, toS }: { fromS: number; toS: number }): string {
  return `from ${minute(fromS)} to ${minute(toS)}`;
}
