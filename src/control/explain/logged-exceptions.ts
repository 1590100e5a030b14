/** The exceptions at the end of the logs of an API's workers, counted: the server itself does not keep them. */
import { open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** Of replicas that ran lately. */
const FILES_READ = 3;
const BYTES_READ = 64 * 1024;
const STAMP = /^\d{4}-\d{2}-\d{2}T[\d:.]+Z ?/;
const TRACEBACK = "Traceback (most recent call last):";
const TEXT_MAX = 300;

export interface LoggedException {
  /** Its type and message. */
  text: string;
  count: number;
}

/** Unix seconds. */
export interface LoggedTime {
  fromS: number;
  toS: number;
}

/** The most frequent first. None if the log is not there. `time`: only those of it, if the log still has them. */
export async function loggedExceptions(directory: string, time?: LoggedTime): Promise<LoggedException[]> {
  const names = await readdir(directory).catch(() => [] as string[]);
  const logs = names.filter((name) => /^r-[0-9a-f]+\.log$/.test(name)).map((name) => join(directory, name));
  const dated = await Promise.all(logs.map(async (path) => ({ path, time: await changed(path) })));
  const newest = dated.sort((a, b) => b.time - a.time).slice(0, FILES_READ);
  const counts = new Map<string, number>();
  for (const { path } of newest)
    for (const text of exceptionsIn(await tailOf(path).catch(() => ""), time))
      counts.set(text, (counts.get(text) ?? 0) + 1);
  const counted = [...counts].map(([text, count]) => ({ text, count }));
  return counted.sort((a, b) => b.count - a.count);
}

/** The last line of each traceback: the first one after it that is not indented. */
export function exceptionsIn(log: string, time?: LoggedTime): string[] {
  const found: string[] = [];
  let isInside = false;
  for (const stamped of log.split("\n")) {
    if (time !== undefined && !isOf(stamped, time)) continue;
    const line = stamped.replace(STAMP, "");
    if (line.startsWith(TRACEBACK)) isInside = true;
    else if (isInside && line !== "" && !/^\s/.test(line)) {
      found.push(line.slice(0, TEXT_MAX));
      isInside = false;
    }
  }
  return found;
}

function isOf(line: string, { fromS, toS }: LoggedTime): boolean {
  const timeS = Date.parse(STAMP.exec(line)?.[0].trim() ?? "") / 1000;
  return timeS >= fromS && timeS < toS;
}

async function changed(path: string): Promise<number> {
  return stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  );
}

async function tailOf(path: string): Promise<string> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const length = Math.min(size, BYTES_READ);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length);
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}
