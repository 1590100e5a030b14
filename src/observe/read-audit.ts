/** Reads the files of the audit as one, by time, and follows new lines. */
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { delay } from "../base/clock.ts";
import { AUDIT_POLL_MS } from "../contracts/limits/logs.ts";
import { AUDIT_FILES, type AuditFile } from "./audit.ts";
import { namesByAge } from "./numbered-files.ts";

/** Longer than any line. */
const READ_BYTES = 1024 * 1024;

export interface AuditQuery {
  /** Lines since this timestamp. */
  since: string;
  /** Only lines of this key or subject. */
  key: string | undefined;
  follow: boolean;
}

interface Entry {
  time: string;
  by: string | null;
  text: string;
}

/** A reader's position in its file, which it identifies by the inode, because rotation renames files. */
interface Cursor {
  inode: number | undefined;
  at: number;
}

/** A poll that finds nothing yields no lines, so that a reader who has left ends the generator then. */
export async function* readAudit(directory: string, query: AuditQuery): AsyncGenerator<string[]> {
  const readers = AUDIT_FILES.map((file) => new Reader(directory, file));
  for (;;) {
    const entries = takeOldest(readers);
    const wanted = entries.filter(({ time, by }) => time >= query.since && (query.key ?? by) === by);
    if (wanted.length > 0) yield wanted.map(({ text }) => text);
    if (entries.length > 0) continue;
    if (!query.follow) return;
    yield [];
    await delay(AUDIT_POLL_MS);
  }
}

/** The entries that no reader has anything older than, in order; none if all readers are at the end. */
function takeOldest(readers: readonly Reader[]): Entry[] {
  const [first, ...others] = readers
    .filter((reader) => reader.fill())
    .sort((a, b) => compare(a.lastTime, b.lastTime));
  if (first === undefined) return [];
  const until = first.lastTime;
  return [first.takeAll(), ...others.map((reader) => reader.takeUntil(until))]
    .flat()
    .sort((a, b) => compare(a.time, b.time));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

class Reader {
  private readonly names: readonly string[];
  private readonly cursor: Cursor = { inode: undefined, at: 0 };
  private entries: Entry[] = [];

  constructor(directory: string, { name, filesMax }: AuditFile) {
    this.names = namesByAge(join(directory, name), filesMax);
  }

  get lastTime(): string {
    return this.entries.at(-1)!.time;
  }

  /** Reads entries if none are left. False at the end. */
  fill(): boolean {
    while (this.entries.length === 0) {
      const lines = this.nextLines();
      if (lines.length === 0) return false;
      this.entries = lines.flatMap(parse);
    }
    return true;
  }

  takeAll(): Entry[] {
    return this.entries.splice(0);
  }

  takeUntil(time: string): Entry[] {
    const later = this.entries.findIndex((entry) => entry.time > time);
    return this.entries.splice(0, later === -1 ? this.entries.length : later);
  }

  /** The next lines of one file, the oldest file first. */
  private nextLines(): string[] {
    const inodes = this.names.map((file) => statSync(file, { throwIfNoEntry: false })?.ino);
    const known = this.cursor.inode === undefined ? -1 : inodes.indexOf(this.cursor.inode);
    for (const file of this.names.slice(Math.max(0, known))) {
      const lines = readFrom(file, this.cursor);
      if (lines.length > 0) return lines;
    }
    return [];
  }
}

/** No entry for a line that a full disk has cut off. */
function parse(text: string): Entry[] {
  try {
    const { time, by } = JSON.parse(text) as { time: string; by: string | null };
    return [{ time, by, text }];
  } catch {
    return [];
  }
}

/** Whole lines after the cursor, which moves. */
function readFrom(file: string, cursor: Cursor): string[] {
  let fd: number;
  try {
    fd = openSync(file, "r");
  } catch {
    return [];
  }
  try {
    const { ino, size } = fstatSync(fd);
    const at = ino === cursor.inode ? cursor.at : 0;
    // No larger than what is left: hundreds of followers read twice a second, mostly at the end.
    const piece = Buffer.alloc(Math.min(READ_BYTES, Math.max(0, size - at)));
    const whole = piece.subarray(0, readSync(fd, piece, 0, piece.length, at)).lastIndexOf(0x0a) + 1;
    if (whole === 0) return [];
    Object.assign(cursor, { inode: ino, at: at + whole });
    return piece.toString("utf8", 0, whole - 1).split("\n");
  } finally {
    closeSync(fd);
  }
}
