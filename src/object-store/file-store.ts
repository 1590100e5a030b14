/**
 * `file://` under the roots that the operator allows. Checked on the opened file, so that no symbolic link leads out
 * (decision 3.3); links are not listed. One directory is sorted in memory at a time.
 */
import type { BigIntStats } from "node:fs";
import { type FileHandle, open, readdir, realpath, stat } from "node:fs/promises";
import { dirname, join, resolve, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ServiceError } from "../contracts/errors.ts";
import type { ObjectInfo, ObjectStore, OpenObject } from "./object-store.ts";

export class FileStore implements ObjectStore {
  private readonly roots: readonly string[];

  /** `roots`: absolute directories, already resolved to their real paths. */
  constructor(roots: readonly string[]) {
    this.roots = roots;
  }

  async *list(prefix: string): AsyncGenerator<ObjectInfo> {
    const path = localPath(prefix);
    const directory = prefix.endsWith("/") ? path : dirname(path);
    this.assertAllowed(directory, prefix);
    yield* this.walk(directory, path);
  }

  async open(path: string): Promise<OpenObject> {
    const local = localPath(path);
    this.assertAllowed(local, path);
    const handle = await open(local, "r");
    try {
      const info = await handle.stat({ bigint: true });
      const real = await realpath(local);
      const realInfo = await stat(real, { bigint: true });
      if (realInfo.ino !== info.ino || realInfo.dev !== info.dev) throw outside(path, this.roots);
      this.assertAllowed(real, path);
      return new OpenFile(path, handle, info);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  private async *walk(directory: string, prefix: string): AsyncGenerator<ObjectInfo> {
    for (const { name, isDirectory } of await sortedEntries(directory)) {
      const path = join(directory, name);
      const mayMatch = isDirectory
        ? `${path}/`.startsWith(prefix) || prefix.startsWith(`${path}/`)
        : path.startsWith(prefix);
      if (!mayMatch) continue;
      if (isDirectory) {
        yield* this.walk(path, prefix);
      } else {
        const info = await stat(path, { bigint: true });
        yield { path: pathToFileURL(path).href, bytes: Number(info.size), etag: etagOf(info) };
      }
    }
  }

  private assertAllowed(path: string, given: string): void {
    if (!this.roots.some((root) => isInside(path, root))) throw outside(given, this.roots);
  }
}

class OpenFile implements OpenObject {
  readonly path: string;
  readonly bytes: number;
  readonly etag: string;
  private readonly handle: FileHandle;

  constructor(path: string, handle: FileHandle, info: BigIntStats) {
    this.path = path;
    this.handle = handle;
    this.bytes = Number(info.size);
    this.etag = etagOf(info);
  }

  async read(into: Buffer, offset: number, position: number, length: number): Promise<number> {
    return (await this.handle.read(into, offset, length, position)).bytesRead;
  }

  close(): Promise<void> {
    return this.handle.close();
  }
}

/** Opens a file of our own, in the data directory, without the check of roots. */
export async function openOwnFile(path: string): Promise<OpenObject> {
  const handle = await open(path, "r");
  return new OpenFile("", handle, await handle.stat({ bigint: true }));
}

/** Real paths of the operator's roots. Throws when one is missing or holds the data directory. */
export async function resolveRoots(roots: readonly string[], dataDir: string): Promise<string[]> {
  const resolved: string[] = [];
  for (const root of roots) {
    const real = await realpath(resolve(root.replace(/:ro$/, ""))).catch(() => {
      throw new Error(`--allow-local-root ${root}: there is no such directory`);
    });
    if (isInside(dataDir, real) || isInside(real, dataDir)) {
      throw new Error(
        `--allow-local-root ${root}: it holds the data directory ${dataDir}, which jobs may never read`,
      );
    }
    resolved.push(real);
  }
  return resolved;
}

function isInside(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory.endsWith(sep) ? directory : directory + sep);
}

/** Regular files and directories, in the order that their full keys have: a directory counts as its name with `/`. */
async function sortedEntries(directory: string): Promise<{ name: string; isDirectory: boolean }[]> {
  const entries = await readdir(directory, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return [];
    throw error;
  });
  return entries
    .filter((entry) => entry.isFile() || entry.isDirectory())
    .map((entry) => ({
      name: entry.name,
      isDirectory: entry.isDirectory(),
      key: Buffer.from(entry.isDirectory() ? `${entry.name}/` : entry.name),
    }))
    .sort((a, b) => Buffer.compare(a.key, b.key));
}

function localPath(uri: string): string {
  let path: string;
  try {
    path = fileURLToPath(uri);
  } catch (error) {
    throw new ServiceError(
      "invalid_request",
      `"${uri}" is not a file address; write it as file:///absolute/path`,
      { cause: error },
    );
  }
  return path;
}

function etagOf(info: BigIntStats): string {
  return `${info.mtimeNs}-${info.size}-${info.ino}`;
}

function outside(given: string, roots: readonly string[]): ServiceError {
  const allowed = roots.length === 0 ? "no local root is allowed" : `allowed roots: ${roots.join(", ")}`;
  return new ServiceError(
    "path_not_allowed",
    `"${given}" is not under a directory that this server may read (${allowed}); start it with --allow-local-root DIR`,
  );
}
