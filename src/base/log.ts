/**
 * The log of the server's processes (docs/reference/log.md): on a terminal lines for people, elsewhere lines of JSON.
 * User code's output never goes here.
 */
import { isatty } from "node:tty";
import { destination, type Logger, pino } from "pino";
import type { LogEvent } from "./log/events.ts";
import { lineForPeople } from "./log/line.ts";
import { PatientWriter } from "./log/patient-writer.ts";
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

/** Lines are lost if the reader has left, or is far behind. Nothing fails, or waits, because of its log. */
function standardError(log: () => Log): { write(line: string): unknown } {
  return new PatientWriter(STDERR, {
    onLost: (lines) =>
      log().warn({ event: "log_lines_lost", lines }, `${lines} lines of this log were lost: nobody read it`),
  });
}

/** Lines are lost if the disk is full. */
function fileSink(file: string): { write(line: string): unknown } {
  const sink = destination({ dest: file, sync: true, mode: 0o600 });
  sink.on("error", () => {});
  return sink;
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
  const sink = file === undefined ? standardError(() => log) : fileSink(file);
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

/** The AWS SDK says on each start which Node its releases of next year will need. The README lists what Quern supports. */
const KNOWN_WARNING = /^NodeVersionSupportWarning:/;

/** Warnings of Node and of libraries become lines of the log. */
export function logWarnings(): void {
  process.removeAllListeners("warning").on("warning", ({ name, message }) => {
    if (name === "ExperimentalWarning" || KNOWN_WARNING.test(message)) return;
    processLog().warn({ event: "node_warning", name }, message);
  });
}
