/**
 * Times in the texts of an explanation: UTC to the minute or second, in a form that the command line and the dashboard find and show
 * in local time. Pure.
 */

/** `2026-11-28T14:05Z`, the start of the minute. */
export function minute(timeS: number): string {
  return `${new Date(Math.floor(timeS / 60) * 60_000).toISOString().slice(0, 16)}Z`;
}

/** `2026-11-28T14:05:09Z`. */
export function second(timeS: number): string {
  return `${new Date(timeS * 1000).toISOString().slice(0, 19)}Z`;
}

/** From the start of the first step to the end of the last. `isOpen`: it had not ended then. */
export function period({ fromS, toS, isOpen }: { fromS: number; toS: number; isOpen?: boolean }): string {
  return isOpen === true ? `from ${minute(fromS)} on` : `from ${minute(fromS)} to ${minute(toS)}`;
}
