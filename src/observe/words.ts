/** Messages of the server to people, on standard error. */
import { inBackground } from "../base/boundary.ts";
import type { LogFields, LogLevel } from "../base/log.ts";
import { printable } from "../base/printable.ts";

/** One message that is for people alone, whatever the log looks like. It may contain text from others, such as a path. */
export function say(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

/** Whether people read standard error as it comes. */
export function isTerminal(): boolean {
  return process.stderr.isTTY === true;
}

let least: LogLevel = "info";

/** `--log-level`, for the lines of the parent. */
export function tellFrom(level: LogLevel): void {
  least = level;
}

/**
 * A line of the parent's log. The parent loads the log with its first line, because a start does not need it. If an
 * upgrade has replaced the file meanwhile, the message comes as plain text: a stop must not fail because of its log.
 */
export async function tell(level: LogLevel, fields: LogFields, message: string): Promise<void> {
  const log = await import("../base/log.ts").catch(() => undefined);
  if (log === undefined) return say(`quern: ${message}`);
  log.setLogLevel(least);
  log.processLog()[level](fields, message);
}

/** The same, for whoever does not wait for it. */
export function tellSoon(level: LogLevel, fields: LogFields, message: string): void {
  inBackground(tell(level, fields, message));
}

/** The reader of stderr has left, or the disk of its file is full. Ending the process would help nobody. */
export function outliveReaders(): void {
  process.stderr.on("error", () => {});
}
