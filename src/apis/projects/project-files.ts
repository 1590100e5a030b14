/** The files of a deployed project: computes their content id, makes new ones durable, and repairs damaged ones. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { lstat, mkdir, readdir, rename, rm } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { removeTree } from "../../base/files/remove-tree.ts";
import { sync } from "../../base/files/sync.ts";
import { TimeSlices } from "../../base/loop/turns.ts";
import { SLICE_MS } from "../../contracts/limits/event-loop.ts";

/** Files that are synced or read at a time: enough to keep a disk busy. */
const AT_ONCE = 16;
/** A limit for all tries together to find the files that a project was deployed with: a second of work. */
const HASHED_PATHS_MAX = 1_000_000;

export interface ProjectFile {
  /** Relative to the project. */
  path: string;
  digest: string;
}

/** Lists all files, sorted by path. */
export async function filesOf(directory: string): Promise<ProjectFile[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const found: ProjectFile[] = [];
  for (const file of files.sort())
    found.push({ path: relative(directory, file), digest: await digestOf(file) });
  return found;
}

/** The same files have the same id. */
export function contentId(files: readonly ProjectFile[]): string {
  const hash = createHash("sha256");
  for (const { path, digest } of files) hash.update(`${path}\0${digest}\n`);
  return hash.digest("hex").slice(0, 24);
}

/**
 * Finds the files that a project was deployed with, without those that user code and Python wrote beside them. Later
 * files are newer, so the newest are left out one by one until the rest has the project's id. Undefined if no rest has
 * it.
 */
export async function deployedFiles(directory: string, id: string): Promise<ProjectFile[] | undefined> {
  let files = await filesOf(directory);
  const times = new Map<string, number>();
  for (const { path } of files) times.set(path, (await lstat(join(directory, path))).mtimeMs);
  const newest = [...times.keys()].sort((a, b) => times.get(b)! - times.get(a)!);
  const tries = Math.ceil(HASHED_PATHS_MAX / Math.max(1, files.length));
  const slices = new TimeSlices(SLICE_MS);
  for (const path of newest.slice(0, tries)) {
    if (contentId(files) === id) return files;
    files = files.filter((file) => file.path !== path);
    if (slices.isOver) await slices.rest();
  }
  return contentId(files) === id ? files : undefined;
}

/** A version without jobs may be deleted meanwhile, with its files. */
export function unlessGone(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}

/**
 * Syncs a project's files. It must run before the database, which is durable, names the project. Otherwise a power
 * failure could leave empty files under this id.
 */
export async function makeDurable(directory: string, files: readonly ProjectFile[]): Promise<void> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const directories = entries.filter((entry) => entry.isDirectory());
  await inPieces(files, ({ path }) => sync(join(directory, path)));
  await inPieces(directories, ({ parentPath, name }) => sync(join(parentPath, name)));
  await sync(directory);
}

/**
 * Replaces each file of `directory` that is missing or changed with the one of `source`, whose files are moved. Files
 * that user code wrote beside them stay. Returns the paths of the replaced files.
 */
export async function repair(
  directory: string,
  source: string,
  files: readonly ProjectFile[],
): Promise<string[]> {
  const damaged: string[] = [];
  for (const { path, digest } of files) {
    const target = join(directory, path);
    if ((await isFile(target)) && (await digestOf(target)) === digest) continue;
    await sync(join(source, path));
    await makeDirectory(directory, dirname(target));
    await removeTree(target);
    await rename(join(source, path), target);
    await sync(dirname(target));
    damaged.push(path);
  }
  return damaged;
}

/** Makes a directory, and replaces a file that has its path. */
async function makeDirectory(root: string, directory: string): Promise<void> {
  if (directory === root) return;
  await makeDirectory(root, dirname(directory));
  const info = await lstat(directory).catch(() => undefined);
  if (info?.isDirectory() === true) return;
  await rm(directory, { force: true });
  await mkdir(directory);
  await sync(dirname(directory));
}

function isFile(path: string): Promise<boolean> {
  return lstat(path).then(
    (info) => info.isFile(),
    () => false,
  );
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  return hash.digest("hex");
}

async function inPieces<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += AT_ONCE)
    await Promise.all(items.slice(at, at + AT_ONCE).map(work));
}
