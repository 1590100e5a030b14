/**
 * Sorts names by their bytes, any number of them in bounded memory. Names that do not fit into one run are sorted in
 * several, which are kept in unlinked files and merged. The system removes these files when this process ends.
 *
 * Names are latin1 strings: each character is one byte of the name, so comparing strings compares bytes. A name that is
 * not valid UTF-8 survives.
 */
import { type FileHandle, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { newUlid } from "../../base/ids.ts";
import { LISTING_SLICES } from "../listing/listing-slices.ts";
import { sortInSlices } from "../listing/sort-in-slices.ts";

/** About 7 MiB of short names. */
const RUN_NAMES = 100_000;
const READ_BYTES = 64 * 1024;
const PAGE_NAMES = 1000;
/** The one byte that no file name has. */
const SEPARATOR = "\0";

export async function* sortedNames(
  names: AsyncIterable<string>,
  temporaryDirectory: string,
  runNames = RUN_NAMES,
): AsyncGenerator<string[]> {
  const runs: RunReader[] = [];
  try {
    let run: string[] = [];
    for await (const name of names) {
      run.push(name);
      if (run.length < runNames) continue;
      runs.push(await RunReader.write(await sort(run), temporaryDirectory));
      run = [];
    }
    const last = await sort(run);
    if (runs.length === 0) yield* pages(last);
    else {
      if (last.length > 0) runs.push(await RunReader.write(last, temporaryDirectory));
      yield* merge(runs);
    }
  } finally {
    await Promise.all(runs.map((run) => run.close()));
  }
}

function sort(run: readonly string[]): Promise<string[]> {
  return sortInSlices(run, LISTING_SLICES);
}

async function* pages(names: string[]): AsyncGenerator<string[]> {
  for (let at = 0; at < names.length; at += PAGE_NAMES) yield names.slice(at, at + PAGE_NAMES);
}

/** Takes the least of the runs' heads, again and again. Runs are few: 500 hold fifty million names. */
async function* merge(runs: readonly RunReader[]): AsyncGenerator<string[]> {
  let live = [...runs];
  for (const run of live) await run.fill();
  let page: string[] = [];
  while (live.length > 0) {
    let least = live[0]!;
    for (const run of live) if (run.head < least.head) least = run;
    page.push(least.head);
    if (!least.advance() && !(await least.fill())) live = live.filter((run) => run !== least);
    if (page.length < PAGE_NAMES) continue;
    yield page;
    page = [];
  }
  if (page.length > 0) yield page;
}

class RunReader {
  private readonly file: FileHandle;
  private readonly buffer = Buffer.allocUnsafe(READ_BYTES);
  private names: string[] = [];
  private at = 0;
  private rest = "";
  private position = 0;

  private constructor(file: FileHandle) {
    this.file = file;
  }

  static async write(sorted: readonly string[], temporaryDirectory: string): Promise<RunReader> {
    const path = join(temporaryDirectory, `run-${newUlid()}`);
    const file = await open(path, "wx+", 0o600);
    await rm(path);
    for (let at = 0; at < sorted.length; at += 10_000) {
      const text = sorted.slice(at, at + 10_000).join(SEPARATOR) + SEPARATOR;
      await file.appendFile(Buffer.from(text, "latin1"));
    }
    return new RunReader(file);
  }

  get head(): string {
    return this.names[this.at]!;
  }

  /** False if the names read so far are used up. */
  advance(): boolean {
    return ++this.at < this.names.length;
  }

  /** Reads more names; false at the end. */
  async fill(): Promise<boolean> {
    do {
      const { bytesRead } = await this.file.read(this.buffer, 0, READ_BYTES, this.position);
      if (bytesRead === 0) return false;
      this.position += bytesRead;
      this.names = (this.rest + this.buffer.toString("latin1", 0, bytesRead)).split(SEPARATOR);
      this.rest = this.names.pop()!;
    } while (this.names.length === 0);
    this.at = 0;
    return true;
  }

  close(): Promise<void> {
    return this.file.close();
  }
}
