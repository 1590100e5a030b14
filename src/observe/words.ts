/** Messages of the server to people, on standard error. */
import { inBackground } from "../base/boundary.ts";
import type { LogFields, LogLevel } from "../base/log.ts";
import { printable } from "../base/printable.ts";

/** One message that is for people alone, whatever the log looks like. It may contain text from others, such as a path. */
export function say(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

let least: LogLevel = "info";

/** `--log-level`, for the lines of the parent. */
export function tellFrom(level: LogLevel): void {
  least = level;
}

/** A line of the parent's log. The parent loads the log with its first line, because a start does not need it. */
export async function tell(level: LogLevel, fields: LogFields, message: string): Promise<void> {
  const { processLog, setLogLevel } = await import("../base/log.ts");
  setLogLevel(least);
  processLog()[level](fields, message);
}

/** The same, for whoever does not wait for it. */
export function tellSoon(level: LogLevel, fields: LogFields, message: string): void {
  inBackground(tell(level, fields, message));
}

/** The reader of stderr has left, or the disk of its file is full. Ending the process would help nobody. */
export function outliveReaders(): void {
  process.stderr.on("error", () => {});
}
