/**
 * The log of the server's processes (docs/reference/log.md): on a terminal lines for people, elsewhere lines of JSON.
 * User code's output never goes here.
 */
import { isatty } from "node:tty";
import { destination, type Logger, pino } from "pino";
import type { LogEvent } from "./log/events.ts";
import { lineForPeople } from "./log/line.ts";
import { printable } from "./printable.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";

/** `err` is an Error. */
export interface LogFields {
  readonly event: LogEvent;
  readonly [field: string]: unknown;
}
/** The message is a sentence for people. */
export type Log = Record<LogLevel, (fields: LogFields, message: string) => void>;

const STDERR = 2;
const asItIs = (line: string): string => line;
const opened: Logger[] = [];
let least: LogLevel = "info";

/** Of this process: less important lines are not written. */
export function setLogLevel(level: LogLevel): void {
  if (level === least) return;
  least = level;
  for (const log of opened) log.level = level;
}

let own: Log | undefined;

/** The log of this process. */
export function processLog(): Log {
  own ??= openLog("server");
  return own;
}

/** Opens the log of this process under the name of its role. */
export function openProcessLog(name: string, clean: (line: string) => string): void {
  own = openLog(name, undefined, clean);
}

/**
 * Opens a log, which is called `name` in each line. It goes to stderr, or to `file`. `clean` removes from a line what
 * nobody should read there. Writes are synchronous, so that the last line before a kill is written.
 */
export function openLog(name: string, file?: string, clean: (line: string) => string = asItIs): Log {
  const shape = file === undefined && isatty(STDERR) ? lineForPeople : asItIs;
  const sink =
    file === undefined
      ? destination({ fd: STDERR, sync: true })
      : destination({ dest: file, sync: true, mode: 0o600 });
  // Lines are lost if the disk is full or the reader has left. Nothing fails because of its log.
  sink.on("error", () => {});
  // A terminal may show this log, and a line may contain text from others. JSON leaves some terminal controls
  // unescaped.
  const write = (line: string) => {
    sink.write(printable(clean(shape(line))));
  };
  const log = pino(
    {
      base: { name, pid: process.pid },
      level: least,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (level) => ({ level }) },
    },
    { write },
  );
  opened.push(log);
  return log;
}
