/** The server's own log: JSON lines on stderr or in a file. User code's output never goes here. */
import { destination, type Logger, pino } from "pino";
import { printable } from "./printable.ts";

export type Log = Logger;

const asItIs = (line: string): string => line;

/**
 * Opens a log that writes to stderr, or to `file`. `clean` removes from a line what nobody should read there. Writes
 * are synchronous, so that the last line before a kill is written.
 */
export function openLog(name: string, file?: string, clean: (line: string) => string = asItIs): Log {
  const sink =
    file === undefined
      ? destination({ fd: 2, sync: true })
      : destination({ dest: file, sync: true, mode: 0o600 });
  // Lines are lost if the disk is full or the reader has left. Nothing fails because of its log.
  sink.on("error", () => {});
  // A terminal may show this log, and a line may contain text from others. JSON leaves some terminal controls
  // unescaped.
  const write = (line: string) => {
    sink.write(printable(clean(line)));
  };
  return pino(
    { name, base: { name, pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime },
    { write },
  );
}
