/**
 * Unpacks an uploaded archive (a tar file, mostly gzipped), and stops as soon as it is more than a project may be: in bytes, in entries, in
 * what its headers take. Only plain files and directories are made, in a directory that was empty, and without any special mode bits.
 * A small archive may unpack to all that is allowed, and to nothing beyond: its ratio does not matter.
 */
import { once } from "node:events";
import { createWriteStream, type WriteStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { Parser, type ReadEntry } from "tar";
import { shortageOf } from "../base/disk-full.ts";
import { ServiceError } from "../contracts/errors.ts";
import { PROJECT_BYTES_LIMIT, PROJECT_ENTRIES_MAX, PROJECT_HEADERS_BYTES_MAX } from "../contracts/limits.ts";
import { type ArchiveEntry, placeOf } from "./archive-entry.ts";

const GZIP = 0x1f;

export interface ArchiveLimits {
  /** Of all files together; that many are too many. */
  bytes: number;
  /** Files and directories, those included that only paths name. */
  entries: number;
  /** What the archive may have beside its files. */
  headers: number;
}

const LIMITS: ArchiveLimits = {
  bytes: PROJECT_BYTES_LIMIT,
  entries: PROJECT_ENTRIES_MAX,
  headers: PROJECT_HEADERS_BYTES_MAX,
};

/** Throws `body_too_large` past a limit, `invalid_project` where it is no archive of a project. Nothing is written afterwards. */
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
  /** Why it cannot be taken: the cause of everything that fails from then on. */
  fault: unknown;
  private readonly into: string;
  private readonly limits: ArchiveLimits;
  private readonly parser: Parser;
  private readonly made = new Map<string, Promise<unknown>>();
  private readonly open = new Set<WriteStream>();
  private readonly writing: Promise<void>[] = [];
  private readonly failed: Promise<never>;
  private refuse: (error: unknown) => void = () => {};
  private files = 0;
  private bytes = 0;
  /** Of the archive, unpacked: headers and padding too. */
  private read = 0;

  constructor(into: string, limits: ArchiveLimits) {
    this.into = into;
    this.limits = limits;
    this.failed = new Promise<never>((_, reject) => {
      this.refuse = reject;
    });
    this.failed.catch(() => {});
    // Strict: a damaged archive is an error.
    this.parser = new Parser({
      strict: true,
      zstd: false,
      filter: (_path, entry) => this.accepts(entry as ReadEntry),
      onReadEntry: (entry) => this.take(entry),
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
      if (!this.parser.write(chunk)) await Promise.race([once(this.parser, "drain"), this.failed]);
    }
    this.parser.end();
    await Promise.race([ended, this.failed]);
    await Promise.all(this.writing);
    if (this.fault !== undefined) throw this.fault;
  }

  /** No file is open when this resolves, and none is made any more. */
  async giveUp(): Promise<void> {
    this.fail(new Error("the upload was cut off"));
    for (const file of this.open) file.destroy();
    await Promise.allSettled(this.writing);
    await Promise.allSettled(this.made.values());
  }

  private fail(error: unknown): void {
    if (this.fault !== undefined) return;
    this.fault = error;
    this.refuse(error);
  }

  private meter(chunk: Buffer): void {
    // What is compressed once more would be unpacked by the parser, out of our sight.
    if (this.read === 0 && chunk[0] === GZIP) this.fail(new Error("it is compressed twice"));
    this.read += chunk.length;
    const { headers } = this.limits;
    if (this.read - this.bytes > headers)
      this.fail(tooLarge(`the archive has more than ${headers} bytes beside its files`));
  }

  /** Whether the entry is to be written. The parser's caller must not be thrown at. */
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

  /** An entry of a type that the parser does not know, or metadata that are larger than it takes. */
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

/** The tar file: unpacked where it is gzipped. */
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
