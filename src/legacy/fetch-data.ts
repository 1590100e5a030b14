/**
 * Brings an application's data to this machine: a file of its project, or files at an address of a store. A store may
 * send whatever it likes, so both what it lists and what it sends are bounded.
 */
import { mkdir, open } from "node:fs/promises";
import { basename, join } from "node:path";
import { removeTree } from "../base/files/remove-tree.ts";
import { ServiceError } from "../contracts/errors.ts";
import {
  DATA_BYTES_MAX,
  DATA_DISK_SHARE,
  DATA_FILES_MAX,
  DATA_PAGES_MAX,
} from "../contracts/limits/input-files.ts";
import type { ObjectStore, OpenObject } from "../object-store/object-store.ts";
import { freeBytes } from "../observe/disk-space.ts";
import { isOwnPath } from "./check/own-path.ts";

const PIECE_BYTES = 4 << 20;
const LOCAL = "file://";

export interface DataPlace {
  /** As the configuration says it. */
  path: string;
  /** The directory of the user's files. */
  project: string;
  /** Downloads go there. It is emptied first, and removed if the data cannot be fetched. */
  directory: string;
  /** Aborted when nobody wants the data any more. */
  signal: AbortSignal;
}

/** What the data may have. */
export interface DataLimits {
  files: number;
  pages: number;
  bytes: number;
}

const LIMITS: DataLimits = { files: DATA_FILES_MAX, pages: DATA_PAGES_MAX, bytes: DATA_BYTES_MAX };

/** Returns the paths of local files, in the order of their addresses. */
export async function fetchData(
  store: ObjectStore,
  place: DataPlace,
  limits: DataLimits = LIMITS,
): Promise<string[]> {
  const { path, project, directory, signal } = place;
  if (isOwnPath(path)) return [join(project, path)];
  const found = await filesAt(store, path.replace(/^s3a:/, "s3:"), limits, signal);
  if (found.length === 0) throw refused(`there is no data at ${path}: neither a file nor a directory`);
  if (path.startsWith(LOCAL)) return found.map((address) => address.slice(LOCAL.length));
  await removeTree(directory);
  await mkdir(directory, { recursive: true });
  try {
    return await downloadAll(store, found, place, limits);
  } catch (error) {
    await removeTree(directory);
    throw error;
  }
}

/**
 * The object itself, or what is in the directory of this name. Like data engines, it skips names that begin with `_` or
 * `.`.
 */
async function filesAt(
  store: ObjectStore,
  path: string,
  limits: DataLimits,
  signal: AbortSignal,
): Promise<string[]> {
  const directory = path.endsWith("/") ? path : `${path}/`;
  const found = new Set<string>();
  let pages = 0;
  for await (const page of store.list(path.replace(/\/+$/, ""), { sizes: false, signal })) {
    signal.throwIfAborted();
    if (++pages > limits.pages) throw endless(path, limits.pages);
    for (const object of page) {
      if (object.path !== path && !isPart(object.path, directory)) continue;
      if (found.has(object.path)) throw repeated(path, object.path);
      found.add(object.path);
      if (found.size > limits.files) throw tooManyFiles(path, limits.files);
    }
  }
  return [...found];
}

function isPart(address: string, directory: string): boolean {
  return address.startsWith(directory) && !/^[_.]/.test(basename(address)) && !address.endsWith("/");
}

async function downloadAll(
  store: ObjectStore,
  addresses: readonly string[],
  { path, directory, signal }: DataPlace,
  limits: DataLimits,
): Promise<string[]> {
  const space = Math.floor((await freeBytes(directory)) * DATA_DISK_SHARE);
  const budget = { left: Math.min(limits.bytes, space) };
  const files: string[] = [];
  for (const [at, address] of addresses.entries()) {
    const file = join(directory, `${at}-${basename(address)}`);
    const isWhole = await download(store, address, file, budget, signal);
    if (!isWhole) throw space < limits.bytes ? noSpace(path, space) : tooManyBytes(path, limits.bytes);
    files.push(file);
  }
  return files;
}

/** False if it has more bytes than are left. */
async function download(
  store: ObjectStore,
  address: string,
  file: string,
  budget: { left: number },
  signal: AbortSignal,
): Promise<boolean> {
  const object = await store.open(address);
  const target = await open(file, "w", 0o600);
  try {
    return await copy(object, target, budget, signal);
  } finally {
    await target.close();
    await object.close();
  }
}

async function copy(
  object: OpenObject,
  target: { write: (piece: Uint8Array) => Promise<unknown> },
  budget: { left: number },
  signal: AbortSignal,
): Promise<boolean> {
  const buffer = Buffer.allocUnsafe(PIECE_BYTES);
  for (let position = 0; ; ) {
    const bytes = await object.read(buffer, 0, position, PIECE_BYTES);
    signal.throwIfAborted();
    if (bytes === 0) return true;
    if (bytes > budget.left) return false;
    budget.left -= bytes;
    await target.write(buffer.subarray(0, bytes));
    position += bytes;
  }
}

function refused(message: string): ServiceError {
  return new ServiceError("invalid_request", message);
}

function tooManyFiles(path: string, most: number): ServiceError {
  return refused(`there are more than ${most} files at ${path}; combine them into larger ones`);
}

function endless(path: string, most: number): ServiceError {
  const cure = "name a file, or a directory that shares its beginning with fewer objects";
  return refused(`the listing of ${path} has not ended after ${most} pages; ${cure}`);
}

function repeated(path: string, address: string): ServiceError {
  const cure = "copy the data to another store, or into a file of the project";
  return refused(`the store lists ${address} twice at ${path}, so its listing may never end; ${cure}`);
}

function tooManyBytes(path: string, most: number): ServiceError {
  const cure = "name fewer files, or store them as Parquet, which takes less";
  return refused(`the data at ${path} has more than ${most} bytes; ${cure}`);
}

function noSpace(path: string, most: number): ServiceError {
  const part = `${DATA_DISK_SHARE * 100} % of the free disk of the data directory`;
  return refused(
    `the data at ${path} has more than ${most} bytes, which is ${part}; free some, or name fewer files`,
  );
}
