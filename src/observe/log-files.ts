/**
 * Log files of workers and jobs: one log per writer, each line `<RFC 3339 time> <text>`. Reading merges the logs of a
 * directory by time. A line without a time (for example from a C library) belongs to the line before it.
 */
import { closeSync, fstatSync, writeSync } from "node:fs";
import { readdir, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { delay, wallMs } from "../base/clock.ts";
import { openInDirectory, shortageOf } from "../base/disk-full.ts";
import { OneEachTurn } from "../base/loop/turns.ts";
import { printableLine } from "../base/printable.ts";
import { FORMER_LOGS_KEPT, LOG_FILE_BYTES_MAX, LOG_LINE_BYTES_MAX } from "../contracts/limits/logs.ts";
import { hideInText } from "../contracts/secrets.ts";
import { cutText } from "./cut-text.ts";
import { readPart, rotateLog } from "./log-rotation.ts";

export interface LogLine {
  time: string;
  /** The worker's name, `server` or `install`. */
  source: string;
  line: string;
}

const STAMP = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z) ?/;
/** The name of a worker's log, not of the server's own or the installer's. */
const WORKERS_LOG = /^[a-z]-[0-9a-f]+\.log$/;
const JUST_MADE_MS = 60_000;
const FOLLOW_MS = 200;
/** Bytes of all logs of a directory together in one step. */
const READ_BYTES = 32 * 1024;
/** ... and the minimum for each of them. */
const READ_BYTES_LEAST = 2 * 1024;
/**
 * Lines of all logs of a directory together in one step, and how many are passed on together. A reader may stop there,
 * and then holds them all; an empty line takes a hundred times its bytes.
 */
const LINES_AT_ONCE = 4_000;
/** ... and the minimum for each of them: more than READ_BYTES_LEAST has, unless lines have no time. */
const LINES_LEAST = 100;
const ROTATION_TRIES = 50;
const ROTATION_WAIT_MS = 10;
const NOTHING = Buffer.alloc(0);

/**
 * All readers of logs take turns: in each turn of the event loop one of them does one step. A hundred followers with
 * separate slices kept everything else waiting for a hundred slices, the watch of the logs' sizes too.
 */
const TURNS = new OneEachTurn();

/**
 * Adds a line of the server's own. It may contain text from others, such as the name of a file, so line ends in it are
 * escaped. If the disk is full the line is lost: nothing fails because of it.
 */
export function appendLogLine(file: string, line: string): void {
  try {
    const fd = openInDirectory(file, "a+");
    try {
      if (fstatSync(fd).size >= LOG_FILE_BYTES_MAX) rotateLog(file, fd, LOG_FILE_BYTES_MAX);
      const text = cutText(printableLine(hideInText(line)), LOG_LINE_BYTES_MAX);
      writeSync(fd, `${new Date(wallMs()).toISOString()} ${text}\n`);
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    if (shortageOf(error) === undefined) throw error;
  }
}

/**
 * All lines of the files in `directory`, by time. With `follow`, also those that come later, until `isOver` says that
 * no more will come (called before the last read). A read that finds nothing yields no lines, so that a reader who has
 * left ends the generator then.
 */
export async function* readLogLines(
  directory: string,
  follow: boolean,
  isOver: () => Promise<boolean>,
): AsyncGenerator<LogLine[]> {
  const cursors = new Map<string, LogCursor>();
  for (;;) {
    const over = !follow || (await isOver());
    for (;;) {
      const lines = await takeOldest(directory, cursors);
      if (lines.length === 0) break;
      for (let at = 0; at < lines.length; at += LINES_AT_ONCE) {
        if (at > 0) await TURNS.turn();
        yield lines.slice(at, at + LINES_AT_ONCE);
      }
    }
    if (over) return;
    yield [];
    await delay(FOLLOW_MS);
  }
}

/** A reader's position in one log, counted from the log's first byte: rotation moves bytes, not their positions. */
interface LogCursor {
  at: number;
  /** The beginning of a line whose end has not come yet. */
  rest: Buffer;
  /** How many bytes of that line were dropped because it is too long. */
  cut: number;
  time: string;
  /** Read and not yet returned: another log may have older lines. */
  lines: LogLine[];
}

/** The lines that no log has anything older than, in order; none if all logs are at their end. */
async function takeOldest(directory: string, cursors: Map<string, LogCursor>): Promise<LogLine[]> {
  const names = await readdir(directory).catch(() => [] as string[]);
  const logs = names.filter((entry) => entry.endsWith(".log")).sort();
  const most = {
    bytes: Math.max(READ_BYTES_LEAST, Math.floor(READ_BYTES / logs.length)),
    lines: Math.max(LINES_LEAST, Math.floor(LINES_AT_ONCE / logs.length)),
  };
  for (const name of logs) {
    const cursor = cursors.get(name) ?? { at: 0, rest: NOTHING, cut: 0, time: "", lines: [] };
    cursors.set(name, cursor);
    await fill(join(directory, name), cursor, most);
  }
  const filled = [...cursors.values()].filter(({ lines }) => lines.length > 0);
  const until = filled.map(lastTime).sort(compare)[0];
  return filled
    .flatMap((cursor) => (lastTime(cursor) === until ? cursor.lines.splice(0) : takeUntil(cursor, until!)))
    .sort((a, b) => compare(a.time, b.time));
}

/** How much of one log is read in one step. */
interface Most {
  bytes: number;
  lines: number;
}

/** Reads until there is a whole line that was not yet returned, or until the log's end. */
async function fill(file: string, cursor: LogCursor, most: Most): Promise<void> {
  while (cursor.lines.length === 0) {
    await TURNS.turn();
    const { lines, bytes } = await readFrom(file, cursor, most);
    cursor.lines = lines;
    if (bytes === 0) return;
  }
}

function lastTime({ lines }: LogCursor): string {
  return lines.at(-1)!.time;
}

function takeUntil({ lines }: LogCursor, time: string): LogLine[] {
  const later = lines.findIndex((line) => line.time > time);
  return lines.splice(0, later === -1 ? lines.length : later);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Whole lines after the cursor, up to `most`. */
async function readFrom(
  file: string,
  cursor: LogCursor,
  most: Most,
): Promise<{ lines: LogLine[]; bytes: number }> {
  const source = basename(file).replace(/\.log$/, "");
  let part = readPart(file, cursor.at, most.bytes);
  for (let tries = 0; part === undefined && tries < ROTATION_TRIES; tries++) {
    await delay(ROTATION_WAIT_MS);
    part = readPart(file, cursor.at, most.bytes);
  }
  if (part === undefined) return { lines: [], bytes: 0 };
  const dropped = part.from - cursor.at;
  if (dropped > 0) Object.assign(cursor, { rest: NOTHING, cut: 0 });
  const { whole, taken } = wholeLines(part.bytes, cursor, most.lines);
  cursor.at = part.from + taken;
  const lines = whole.map((piece) => {
    const stamp = STAMP.exec(piece);
    if (stamp !== null) cursor.time = stamp[1]!;
    return { time: cursor.time, source, line: stamp === null ? piece : piece.slice(stamp[0].length) };
  });
  if (dropped > 0) lines.unshift({ time: lines[0]?.time ?? cursor.time, source, line: skipped(dropped) });
  return { lines, bytes: part.bytes.length };
}

/** Up to `most` lines, and how many of the bytes were taken for them and for the begin of the next one. */
function wholeLines(bytes: Buffer, cursor: LogCursor, most: number): { whole: string[]; taken: number } {
  const whole: string[] = [];
  let start = 0;
  for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, start)) {
    if (whole.length >= most) return { whole, taken: start };
    hold(cursor, bytes.subarray(start, end));
    const more = cursor.cut === 0 ? "" : ` ... quern: ${cursor.cut} bytes of this line were dropped`;
    whole.push(cursor.rest.toString() + more);
    Object.assign(cursor, { rest: NOTHING, cut: 0 });
    start = end + 1;
  }
  hold(cursor, bytes.subarray(start));
  // The piece is a view: without a copy it would keep all the bytes that were read.
  cursor.rest = Buffer.from(cursor.rest);
  return { whole, taken: bytes.length };
}

/** Adds to the unfinished line, up to the longest that is shown. */
function hold(cursor: LogCursor, piece: Buffer): void {
  const kept = piece.subarray(0, LOG_LINE_BYTES_MAX - cursor.rest.length);
  cursor.rest = cursor.rest.length === 0 ? kept : Buffer.concat([cursor.rest, kept]);
  cursor.cut += piece.length - kept.length;
}

function skipped(bytes: number): string {
  return `quern: ${bytes} bytes before this line were dropped; a worker's log keeps its newest 8 to 16 MiB`;
}

/** Removes the logs of workers that have ended, except the newest. `live` returns the workers that still write. */
export async function removeFormerLogs(directory: string, live: () => Promise<Set<string>>): Promise<void> {
  const names = await readdir(directory).catch(() => [] as string[]);
  const workers = names.filter((name) => WORKERS_LOG.test(name)).map((name) => name.replace(/\.log$/, ""));
  if (workers.length <= FORMER_LOGS_KEPT) return;
  const writing = await live();
  const former: { worker: string; ms: number }[] = [];
  for (const worker of workers.filter((name) => !writing.has(name))) {
    const written = await stat(join(directory, `${worker}.log`)).catch(() => undefined);
    // A log that was just made may belong to a worker that has no record yet.
    if (written !== undefined && wallMs() - written.mtimeMs > JUST_MADE_MS)
      former.push({ worker, ms: written.mtimeMs });
  }
  for (const { worker } of former.sort((a, b) => b.ms - a.ms).slice(FORMER_LOGS_KEPT))
    for (const end of [".log", ".log.1", ".log.1.new", ".log.lock"])
      await rm(join(directory, worker + end), { force: true });
}
