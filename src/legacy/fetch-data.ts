/** Brings an application's data to this machine: a file of its project, or files at an address of a store. */
import { mkdir, open, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { ServiceError } from "../contracts/errors.ts";
import type { ObjectStore, OpenObject } from "../object-store/object-store.ts";
import { isOwnPath } from "./check/own-path.ts";

const PIECE_BYTES = 4 << 20;
const LOCAL = "file://";

/**
 * Returns the paths of local files, in the order of their addresses. Downloads go to `directory`, which is emptied
 * first.
 */
export async function fetchData(
  store: ObjectStore,
  path: string,
  project: string,
  directory: string,
): Promise<string[]> {
  if (isOwnPath(path)) return [join(project, path)];
  const found = await filesAt(store, path.replace(/^s3a:/, "s3:"));
  if (found.length === 0)
    throw new ServiceError("invalid_request", `there is no data at ${path}: neither a file nor a directory`);
  if (path.startsWith(LOCAL)) return found.map((address) => address.slice(LOCAL.length));
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  const files: string[] = [];
  for (const [at, address] of found.entries()) {
    const file = join(directory, `${at}-${basename(address)}`);
    await download(store, address, file);
    files.push(file);
  }
  return files;
}

/**
 * The object itself, or what is in the directory of this name. Like data engines, it skips names that begin with `_` or
 * `.`.
 */
async function filesAt(store: ObjectStore, path: string): Promise<string[]> {
  const directory = path.endsWith("/") ? path : `${path}/`;
  const found: string[] = [];
  for await (const page of store.list(path.replace(/\/+$/, ""), { sizes: false }))
    for (const object of page)
      if (object.path === path || isPart(object.path, directory)) found.push(object.path);
  return found;
}

function isPart(address: string, directory: string): boolean {
  return address.startsWith(directory) && !/^[_.]/.test(basename(address)) && !address.endsWith("/");
}

async function download(store: ObjectStore, address: string, file: string): Promise<void> {
  const object = await store.open(address);
  const target = await open(file, "w", 0o600);
  try {
    await copy(object, target);
  } finally {
    await target.close();
    await object.close();
  }
}

async function copy(object: OpenObject, target: { write: (piece: Uint8Array) => Promise<unknown> }) {
  const buffer = Buffer.allocUnsafe(PIECE_BYTES);
  for (let position = 0; ; ) {
    const bytes = await object.read(buffer, 0, position, PIECE_BYTES);
    if (bytes === 0) return;
    await target.write(buffer.subarray(0, bytes));
    position += bytes;
  }
}
