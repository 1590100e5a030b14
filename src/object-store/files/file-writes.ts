/**
 * Writes files below the roots: a temporary file beside the final one, made durable, then renamed. Two writes of this
 * process to the same name follow each other. Two servers that write the same directory are not protected from each
 * other, except that "absent" holds.
 */
import { opendir, rm, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { wallMs } from "../../base/clock.ts";
import { ServiceError } from "../../contracts/errors.ts";
import { DIRECTORY_CHECK_MS, DIRECTORY_CHECKS_MAX, FILE_PIECE_BYTES } from "../../contracts/limits/stores.ts";
import { AtMost } from "../at-most.ts";
import type { Upload, WriteCondition, Written } from "../object-store.ts";
import { isLeftProbe, isTemporaryName } from "../own-names.ts";
import { type Piece, type PieceSink, PieceUpload } from "../piece-upload.ts";
import { localPath } from "../store-path.ts";
import { assertSmall } from "../write-limits.ts";
import type { AllowedPaths } from "./allowed-paths.ts";
import { TemporaryFile } from "./temporary-file.ts";
import { WritableDirectory } from "./writable-directory.ts";
import { writeError } from "./write-error.ts";

export class FileWrites {
  private readonly allowed: AllowedPaths;
  /** The last write to each real path that is being written. */
  private readonly turns = new Map<string, Promise<unknown>>();
  private readonly checks = new AtMost(DIRECTORY_CHECKS_MAX, DIRECTORY_CHECK_MS);

  constructor(allowed: AllowedPaths) {
    this.allowed = allowed;
  }

  async put(path: string, body: Uint8Array, condition?: WriteCondition): Promise<Written> {
    assertSmall(path, body);
    const sink = await this.open(path);
    try {
      return await sink.writeWhole(body, condition);
    } finally {
      // Whether the object was written is settled. Listings leave out a temporary file that stays.
      await sink.abort().catch(() => {});
    }
  }

  async create(path: string): Promise<Upload> {
    return new PieceUpload(path, await this.open(path));
  }

  async remove(path: string): Promise<void> {
    const { directory, name } = await this.directoryOf(path, "existing");
    if (directory === undefined) return;
    try {
      await unlink(directory.at(name));
      await directory.sync();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw writeError(error, path);
    } finally {
      await directory.close();
    }
  }

  /**
   * Throws if files below this address cannot be written. Missing directories are not made: most callers only ask. So a
   * file is written in the nearest existing directory, and removed.
   */
  async assertWritable(prefix: string): Promise<void> {
    const local = localPath(prefix);
    const path = local.endsWith("/") ? local : dirname(local);
    try {
      await this.checks.run(() => this.tryWriting(path, prefix));
    } catch (error) {
      throw writeError(error, prefix);
    }
  }

  private async tryWriting(path: string, given: string): Promise<void> {
    const directory = await WritableDirectory.open(path, "nearest", this.allowed, given);
    try {
      await (await TemporaryFile.create(directory, given)).close();
    } finally {
      await directory.close();
    }
  }

  /** In the whole directory of the prefix: the name of a temporary file does not tell which one it was to get. */
  async removeUnfinished(prefix: string): Promise<void> {
    const local = localPath(prefix);
    const directory = local.endsWith("/") ? local : dirname(local);
    try {
      await removeTemporaryFiles(directory, this.allowed, prefix);
    } catch (error) {
      throw writeError(error, prefix);
    }
  }

  private async open(path: string): Promise<FileSink> {
    const { directory, name } = await this.directoryOf(path, "made");
    try {
      const file = await TemporaryFile.create(directory, path);
      const inTurn = <T>(work: () => Promise<T>) => this.inTurn(`${directory.real}/${name}`, work);
      return new FileSink({ path, name, directory, file, inTurn });
    } catch (error) {
      await directory.close();
      throw writeError(error, path);
    }
  }

  private async directoryOf<T extends "made" | "existing">(path: string, missing: T) {
    const local = localPath(path);
    const name = basename(local);
    if (local.endsWith("/") || name === "." || name === ".." || isTemporaryName(name))
      throw new ServiceError("path_not_allowed", `"${path}" is not the name of a file; name one`);
    try {
      return { directory: await WritableDirectory.open(dirname(local), missing, this.allowed, path), name };
    } catch (error) {
      throw writeError(error, path);
    }
  }

  /** Runs the work after all earlier work on this path. */
  private async inTurn<T>(path: string, work: () => Promise<T>): Promise<T> {
    const before = this.turns.get(path) ?? Promise.resolve();
    const turn = before.catch(() => {}).then(work);
    this.turns.set(path, turn);
    try {
      return await turn;
    } finally {
      if (this.turns.get(path) === turn) this.turns.delete(path);
    }
  }
}

/** In the directory and those below it. */
async function removeTemporaryFiles(path: string, allowed: AllowedPaths, given: string): Promise<void> {
  const directory = await WritableDirectory.open(path, "existing", allowed, given);
  if (directory === undefined) return;
  try {
    for await (const entry of await opendir(directory.at("."))) {
      const isBelow = entry.isDirectory() && allowed.has(join(directory.real, entry.name));
      if (isBelow) await removeTemporaryFiles(join(path, entry.name), allowed, given);
      else if (isTemporaryName(entry.name) || isLeftProbe(entry.name, wallMs()))
        await rm(directory.at(entry.name), { force: true });
    }
  } finally {
    await directory.close();
  }
}

interface FileSinkParts {
  path: string;
  name: string;
  directory: WritableDirectory;
  file: TemporaryFile;
  inTurn: <T>(work: () => Promise<T>) => Promise<T>;
}

/** A temporary file that gets its pieces, then its name. */
class FileSink implements PieceSink {
  readonly pieceBytes = FILE_PIECE_BYTES;
  private readonly parts: FileSinkParts;
  private isClosed = false;

  constructor(parts: FileSinkParts) {
    this.parts = parts;
  }

  async send({ bytes, position }: Piece): Promise<void> {
    await this.parts.file.write(bytes, position).catch(this.refuse);
  }

  async complete(last: Piece): Promise<Written> {
    await this.send(last);
    const written = await this.name(undefined);
    // The file is durable, so an error of closing it changes nothing.
    await this.close().catch(() => {});
    return written;
  }

  async writeWhole(body: Uint8Array, condition: WriteCondition | undefined): Promise<Written> {
    await this.parts.file.write(body, 0).catch(this.refuse);
    return this.name(condition);
  }

  abort(): Promise<void> {
    return this.close();
  }

  private async name(condition: WriteCondition | undefined): Promise<Written> {
    const { file, name, directory, inTurn } = this.parts;
    try {
      const etag = await file.sync();
      await inTurn(() => file.moveTo(name, condition));
      await directory.sync();
      return { etag };
    } catch (error) {
      throw writeError(error, this.parts.path);
    }
  }

  private async close(): Promise<void> {
    if (this.isClosed) return;
    this.isClosed = true;
    const { file, directory } = this.parts;
    try {
      await file.close();
    } finally {
      await directory.close();
    }
  }

  private readonly refuse = (error: unknown): never => {
    throw writeError(error, this.parts.path);
  };
}
