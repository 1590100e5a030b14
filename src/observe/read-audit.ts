/** Reads the files of the audit as one, by time, and follows new lines. */
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { delay } from "../base/clock.ts";
import { OneEachTurn } from "../base/loop/turns.ts";
import { AUDIT_POLL_MS } from "../contracts/limits/logs.ts";
import { AUDIT_FILES, type AuditFile } from "./audit.ts";
import { namesByAge } from "./numbered-files.ts";

/**
 * Bytes of one file in one step: parsing them takes 0.2 ms. A follower whose client does not read holds these lines of
 * each file as text and as entries, some 70 KB. All followers that may be open hold 35 MB.
 */
const READ_BYTES = Math.floor((32 * 1024) / AUDIT_FILES.length);
/** Longer than any line. */
const LINE_BYTES_MAX = 1024 * 1024;

/**
 * All readers of the audit take turns: in each turn of the event loop one of them does one step. One reader of 72 MiB
 * without a match kept everything else waiting for more than half a second.
 */
const TURNS = new OneEachTurn();

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

/** A step that finds nothing yields no lines, so that a reader who has left ends the generator then. */
export async function* readAudit(directory: string, query: AuditQuery): AsyncGenerator<string[]> {
  const readers = AUDIT_FILES.map((file) => new Reader(directory, file));
  for (;;) {
    await TURNS.turn();
    // Of all files in one turn: no file is rotated between two of them.
    const isFilled = readers.map((reader) => reader.fill()).every((is) => is);
    const entries = isFilled ? takeOldest(readers) : [];
    const isAtEnd = isFilled && entries.length === 0;
    if (isAtEnd && !query.follow) return;
    yield entries.filter((entry) => isWanted(entry, query)).map(({ text }) => text);
    if (isAtEnd) await delay(AUDIT_POLL_MS);
  }
}

function isWanted({ time, by }: Entry, { since, key }: AuditQuery): boolean {
  return time >= since && (key ?? by) === by;
}

/** The entries that no reader has anything older than, in order; none if all readers are at the end. */
function takeOldest(readers: readonly Reader[]): Entry[] {
  const [first, ...others] = readers
    .filter((reader) => !reader.isEmpty)
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

  get isEmpty(): boolean {
    return this.entries.length === 0;
  }

  /** Reads a piece if no entries are left. False if the piece had none, and more pieces may follow. */
  fill(): boolean {
    if (!this.isEmpty) return true;
    const lines = this.nextLines();
    this.entries = lines.flatMap(parse);
    return lines.length === 0 || !this.isEmpty;
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
    const whole = wholeLines(fd, at, Math.max(0, size - at));
    if (whole.length === 0) return [];
    Object.assign(cursor, { inode: ino, at: at + whole.length });
    return whole.toString("utf8", 0, whole.length - 1).split("\n");
  } finally {
    closeSync(fd);
  }
}

/** The whole lines among the next bytes, or one line that is longer. `left`: the bytes up to the end of the file. */
function wholeLines(fd: number, at: number, left: number): Buffer {
  for (let most = READ_BYTES; ; most = LINE_BYTES_MAX) {
    // No larger than what is left: hundreds of followers read twice a second, mostly at the end.
    const piece = Buffer.alloc(Math.min(most, left));
    const read = piece.subarray(0, readSync(fd, piece, 0, piece.length, at));
    const whole = read.subarray(0, read.lastIndexOf(0x0a) + 1);
    if (whole.length > 0 || most >= Math.min(LINE_BYTES_MAX, left)) return whole;
  }
}
