/** The log file of a worker, which gets its output. */
import { closeSync, existsSync, fstatSync, openSync, readlinkSync, readSync } from "node:fs";
import { basename } from "node:path";
import { hideOwnKeys } from "../../contracts/secrets.ts";
import type { WorkerIdentity } from "../engine.ts";

const LAST_BYTES = 4096;
const LAST_LINES = 10;

/** The log of a worker that another controller started; undefined if the system does not show it. */
export function standardOutput({ worker_id, pid }: WorkerIdentity): string | undefined {
  try {
    const file = readlinkSync(`/proc/${pid}/fd/1`);
    // User code may have redirected it to another file.
    return basename(file) === `${worker_id}.log` && existsSync(file) ? file : undefined;
  } catch {
    return undefined;
  }
}

/** The last lines of a log file, with Quern's keys hidden. */
export function lastLines(logFile: string): string[] {
  try {
    const file = openSync(logFile, "r");
    try {
      const { size } = fstatSync(file);
      const buffer = Buffer.alloc(Math.min(size, LAST_BYTES));
      readSync(file, buffer, 0, buffer.length, size - buffer.length);
      return hideOwnKeys(buffer.toString("utf8")).trimEnd().split("\n").slice(-LAST_LINES);
    } finally {
      closeSync(file);
    }
  } catch {
    // The log was rotated away, or never written.
    return [];
  }
}
