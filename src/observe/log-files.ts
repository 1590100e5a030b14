/**
 * Log files of workers and jobs: one file a writer, each line `<RFC 3339 time> <text>`. Reading merges the files of a
 * directory by time; a line without one (from a C library, say) belongs to the line before it.
 */
import { appendFileSync, mkdirSync, truncateSync } from "node:fs";
import { copyFile, open, readdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { delay, wallMs } from "../base/clock.ts";
import { isDiskFull } from "../base/disk-full.ts";
import type { Service } from "../base/service.ts";
import { LOG_FILE_BYTES_MAX } from "../contracts/limits.ts";

export interface LogLine {
  time: string;
  /** The worker's name, `server` or `install`. */
  source: string;
  line: string;
}

const STAMP = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?Z) ?/;
const FOLLOW_MS = 200;
const READ_BYTES = 1024 * 1024;

/** Adds a line of the server's own. Where the disk is full the line is lost: nothing fails for its log. */
export function appendLogLine(file: string, line: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    appendFileSync(file, `${new Date(wallMs()).toISOString()} ${line}\n`, { mode: 0o600 });
  } catch (error) {
    if (!isDiskFull(error)) throw error;
  }
}

/**
 * All lines of the files in `directory`, by time; with `follow`, those that come, until `isOver` says that no more
 * will (asked before the last look).
 */
export async function* readLogLines(
  directory: string,
  follow: boolean,
  isOver: () => Promise<boolean>,
): AsyncGenerator<LogLine[]> {
  const cursors = new Map<string, FileCursor>();
  for (;;) {
    const over = !follow || (await isOver());
    for (let hasMore = true; hasMore; ) {
      const { lines, bytes } = await readNew(directory, cursors);
      if (lines.length > 0) yield lines.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
      hasMore = bytes > 0;
    }
    if (over) return;
    await delay(FOLLOW_MS);
  }
}

interface FileCursor {
  offset: number;
  rest: string;
  time: string;
}

/** What has come since the last look; `bytes` tells progress also where no line has ended yet. */
async function readNew(
  directory: string,
  cursors: Map<string, FileCursor>,
): Promise<{ lines: LogLine[]; bytes: number }> {
  const names = await readdir(directory).catch(() => [] as string[]);
  const all: LogLine[] = [];
  let sum = 0;
  for (const name of names.filter((entry) => /\.log(\.1)?$/.test(entry)).sort()) {
    const cursor = cursors.get(name) ?? { offset: 0, rest: "", time: "" };
    cursors.set(name, cursor);
    const { lines, bytes } = await readFrom(join(directory, name), cursor);
    all.push(...lines);
    sum += bytes;
  }
  return { lines: all, bytes: sum };
}

/** Whole lines behind the cursor, up to READ_BYTES of them. */
async function readFrom(file: string, cursor: FileCursor): Promise<{ lines: LogLine[]; bytes: number }> {
  const handle = await open(file, "r").catch(() => undefined);
  if (handle === undefined) return { lines: [], bytes: 0 };
  try {
    const { size } = await handle.stat();
    // Rotated: what was read before is in the older file now.
    if (size < cursor.offset) Object.assign(cursor, { offset: 0, rest: "" });
    const bytes = Buffer.allocUnsafe(Math.min(READ_BYTES, size - cursor.offset));
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, cursor.offset);
    cursor.offset += bytesRead;
    const pieces = (cursor.rest + bytes.toString("utf8", 0, bytesRead)).split("\n");
    cursor.rest = pieces.pop()!;
    const source = basename(file).replace(/\.log(\.1)?$/, "");
    const lines = pieces.map((piece) => {
      const stamp = STAMP.exec(piece);
      if (stamp !== null) cursor.time = stamp[1]!;
      return { time: cursor.time, source, line: stamp === null ? piece : piece.slice(stamp[0].length) };
    });
    return { lines, bytes: bytesRead };
  } finally {
    await handle.close();
  }
}

/**
 * Keeps each log file under LOG_FILE_BYTES_MAX, with one older one beside it. The writer has the file open, so the
 * content is copied and the file emptied; a line written between the two is lost.
 */
export class LogRotation implements Service {
  private readonly directories: () => string[];
  private timer: NodeJS.Timeout | undefined;

  /** `directories`: those that are being written to now. */
  constructor(directories: () => string[]) {
    this.directories = directories;
  }

  async start(): Promise<void> {
    this.timer = setInterval(() => void this.runOnce().catch(() => {}), 5_000);
    this.timer.unref();
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
  }

  async runOnce(): Promise<void> {
    for (const directory of this.directories()) await this.rotateIn(directory);
  }

  private async rotateIn(directory: string): Promise<void> {
    const entries = await readdir(directory).catch(() => [] as string[]);
    for (const entry of entries.filter((name) => name.endsWith(".log"))) {
      const file = join(directory, entry);
      const { size } = await stat(file).catch(() => ({ size: 0 }));
      if (size < LOG_FILE_BYTES_MAX) continue;
      await copyFile(file, `${file}.1`);
      truncateSync(file, 0);
    }
  }
}
