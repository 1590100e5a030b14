/** The server's own log: JSON lines on stderr or in a file. User code's output never goes here. */
import { destination, type Logger, pino } from "pino";
import { printable } from "./printable.ts";

export type Log = Logger;

const asItIs = (line: string): string => line;

/**
 * Opens a log that writes to stderr, or to `file`. `clean`: takes out of a line what nobody should read there. Writes are
 * synchronous, so that the last line before a kill is there.
 */
export function openLog(name: string, file?: string, clean: (line: string) => string = asItIs): Log {
  const sink =
    file === undefined
      ? destination({ fd: 2, sync: true })
      : destination({ dest: file, sync: true, mode: 0o600 });
  // Lines are lost where the disk is full or the reader has left; nothing fails for its log.
  sink.on("error", () => {});
  // A terminal may be where it is read, and a line may hold text of others: JSON leaves some of what a terminal obeys as it is.
  const write = (line: string) => {
    sink.write(printable(clean(line)));
  };
  return pino(
    { name, base: { name, pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime },
    { write },
  );
}
