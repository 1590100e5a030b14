/**
 * Unpacks an uploaded archive (a tar file, usually gzipped). It stops as soon as the archive exceeds a project's limits
 * of bytes, entries or headers. It creates only plain files and directories, in an empty directory and without special
 * mode bits. The compression ratio does not matter: a small archive may unpack up to the limits.
 */
import { once } from "node:events";
import { createWriteStream, type WriteStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { Parser, type ReadEntry } from "tar";
import { shortageOf } from "../../base/disk-full.ts";
import { Interruptible } from "../../base/interruptible.ts";
import { ServiceError } from "../../contracts/errors.ts";
import {
  PROJECT_BYTES_LIMIT,
  PROJECT_ENTRIES_MAX,
  PROJECT_HEADERS_BYTES_MAX,
} from "../../contracts/limits/projects.ts";
import { type ArchiveEntry, placeOf } from "./archive-entry.ts";

const GZIP = 0x1f;

export interface ArchiveLimits {
  /** Total bytes of the files must be smaller than this. */
  bytes: number;
  /** Files and directories, including directories that only appear in paths. */
  entries: number;
  /** Bytes of the archive besides its files. */
  headers: number;
}

const LIMITS: ArchiveLimits = {
  bytes: PROJECT_BYTES_LIMIT,
  entries: PROJECT_ENTRIES_MAX,
  headers: PROJECT_HEADERS_BYTES_MAX,
};

/**
 * Throws `body_too_large` past a limit, or `invalid_project` if it is no archive of a project. Nothing is written
 * afterwards.
 */
export async function unpackArchive(archive: Readable, into: string, limits = LIMITS): Promise<void> {
  const unpacking = new Unpacking(into, limits);
  try {
    await unpacking.run(archive);
  } catch (error) {
    await unpacking.giveUp();
    throw toServiceError(unpacking.fault ?? error);
  } finally {
    archive.destroy();
  }
}

class Unpacking {
  /** Why the archive is refused: the cause of everything that fails from then on. */
  fault: unknown;
  private readonly into: string;
  private readonly limits: ArchiveLimits;
  private readonly parser: Parser;
  private readonly made = new Map<string, Promise<unknown>>();
  private readonly open = new Set<WriteStream>();
  private readonly writing: Promise<void>[] = [];
  private readonly waits = new Interruptible();
  private files = 0;
  private bytes = 0;
  /** Bytes of the unpacked archive, including headers and padding. */
  private read = 0;
  /** The two blocks of zeros that end a tar file have come. */
  private isOver = false;

  constructor(into: string, limits: ArchiveLimits) {
    this.into = into;
    this.limits = limits;
    // `strict` makes a damaged archive an error.
    this.parser = new Parser({
      strict: true,
      zstd: false,
      filter: (_path, entry) => this.accepts(entry as ReadEntry),
      onReadEntry: (entry) => this.take(entry),
    });
    this.parser.on("eof", () => {
      this.isOver = true;
    });
    this.parser.on("error", (error: Error) => this.fail(error));
    this.parser.on("ignoredEntry", (entry: ReadEntry) => this.checkIgnored(entry));
  }

  async run(archive: Readable): Promise<void> {
    const ended = once(this.parser, "end");
    ended.catch(() => {});
    for await (const chunk of tarOf(archive)) {
      this.meter(chunk);
      if (this.fault !== undefined) throw this.fault;
      // The parser would keep all that follows in memory, and copy it with each further chunk.
      if (this.isOver) continue;
      if (!this.parser.write(chunk)) await this.waits.wait(once(this.parser, "drain"));
    }
    this.parser.end();
    await this.waits.wait(ended);
    await Promise.all(this.writing);
    if (this.fault !== undefined) throw this.fault;
  }

  /** Once this resolves, no file is open, and none will be created. */
  async giveUp(): Promise<void> {
    this.fail(new Error("the upload was cut off"));
    for (const file of this.open) file.destroy();
    await Promise.allSettled(this.writing);
    await Promise.allSettled(this.made.values());
  }

  private fail(error: unknown): void {
    if (this.fault !== undefined) return;
    this.fault = error;
    this.waits.interrupt(error);
  }

  private meter(chunk: Buffer): void {
    // The parser would unpack a second compression itself, and its output would not be counted here.
    if (this.read === 0 && chunk[0] === GZIP) this.fail(new Error("it is compressed twice"));
    this.read += chunk.length;
    const { headers } = this.limits;
    if (this.read - this.bytes > headers)
      this.fail(tooLarge(`the archive has more than ${headers} bytes besides its files`));
  }

  /** Whether to write the entry. It must not throw into the parser's caller. */
  private accepts(entry: ReadEntry): boolean {
    if (this.fault !== undefined) return false;
    const placing = placeOf(entry as ArchiveEntry);
    if ("fault" in placing) this.fail(new Error(placing.fault));
    else {
      this.bytes += entry.size;
      this.files++;
      if (placing.kind !== "other") for (const path of placing.directories) this.makeDirectory(path);
      this.checkLimits();
    }
    return this.fault === undefined && !("fault" in placing) && placing.kind !== "other";
  }

  private checkLimits(): void {
    const { bytes, entries } = this.limits;
    const cure = "list what it does not need in .quernignore";
    if (this.bytes >= bytes)
      this.fail(tooLarge(`the project has ${this.bytes} bytes or more, the limit is ${bytes}; ${cure}`));
    if (this.files + this.made.size > entries)
      this.fail(tooLarge(`the project has more than ${entries} files and directories; ${cure}`));
  }

  /** Refuses an entry whose type the parser does not know, or whose metadata are larger than the parser accepts. */
  private checkIgnored(entry: ReadEntry): void {
    const placing = placeOf(entry as ArchiveEntry);
    if (entry.meta) this.fail(new Error("it has metadata of more than a megabyte"));
    else if ("fault" in placing) this.fail(new Error(placing.fault));
  }

  private take(entry: ReadEntry): void {
    const placing = placeOf(entry as ArchiveEntry);
    if (this.fault !== undefined || !("path" in placing)) {
      entry.resume();
      return;
    }
    if (placing.kind === "directory") {
      this.makeDirectory(placing.path);
      entry.resume();
      return;
    }
    const written = this.write(entry, placing.path);
    written.catch((error: unknown) => {
      this.fail(error);
      entry.resume();
    });
    this.writing.push(written);
  }

  private async write(entry: ReadEntry, path: string): Promise<void> {
    await this.made.get(dirname(path));
    if (this.fault !== undefined) throw this.fault;
    const isExecutable = ((entry.mode ?? 0) & 0o111) !== 0;
    const file = createWriteStream(join(this.into, path), { mode: isExecutable ? 0o755 : 0o644 });
    this.open.add(file);
    try {
      entry.pipe(file);
      await finished(file);
    } finally {
      this.open.delete(file);
    }
  }

  private makeDirectory(path: string): void {
    if (this.made.has(path)) return;
    const made = mkdir(join(this.into, path), { recursive: true });
    made.catch((error: unknown) => this.fail(error));
    this.made.set(path, made);
  }
}

/** The tar file, decompressed if it is gzipped. */
async function* tarOf(archive: Readable): AsyncGenerator<Buffer> {
  const chunks = archive[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const first = await chunks.next();
  if (first.done === true) return;
  const all = async function* () {
    yield first.value;
    yield* { [Symbol.asyncIterator]: () => chunks };
  };
  if (first.value[0] !== GZIP) return yield* all();
  const source = Readable.from(all());
  const gunzip = createGunzip();
  source.on("error", (error) => gunzip.destroy(error));
  try {
    yield* source.pipe(gunzip) as AsyncIterable<Buffer>;
  } finally {
    source.destroy();
    gunzip.destroy();
  }
}

function tooLarge(message: string): ServiceError {
  return new ServiceError("body_too_large", message);
}

function toServiceError(error: unknown): unknown {
  if (error instanceof ServiceError || shortageOf(error) !== undefined) return error;
  const message = `the project's archive cannot be read: ${(error as Error).message}`;
  return new ServiceError("invalid_project", message, { cause: error });
}
