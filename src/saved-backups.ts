/** Where the command line keeps backups: files and buckets. */
import { createReadStream, existsSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { Readable } from "node:stream";
import { CannotRestore } from "./backup/manifest.ts";
import { type Restored, restoreBackup } from "./backup/restore-backup.ts";
import { sync } from "./base/files/sync.ts";
import { BUCKET_SCHEMES, pathProblem } from "./contracts/store-paths.ts";
import { openStores } from "./object-store/backends/stores.ts";
import type { ObjectStore } from "./object-store/object-store.ts";
import { serverEnvironment } from "./settings/environment.ts";

const READ_BYTES = 8 * 1024 * 1024;

/** The reason why a backup cannot be saved there, with the cure; undefined if it can. */
export function targetProblem(to: string): string | undefined {
  if (isInBucket(to)) return pathProblem(to);
  return existsSync(to) ? `${to} exists; give another name` : undefined;
}

/** Writes all chunks. Nothing has the name `to` before it is complete and durable. */
export async function saveBackup(to: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  if (isInBucket(to)) return upload(to, chunks);
  const partial = `${to}.partial`;
  // It has secrets: those of configurations, and the hashes of keys.
  await rm(partial, { force: true });
  const file = await open(partial, "wx", 0o600);
  try {
    for await (const chunk of chunks) await file.writeFile(chunk);
    await file.sync();
    await rename(partial, to);
    await sync(dirname(to));
  } finally {
    await file.close();
    await rm(partial, { force: true });
  }
}

async function upload(to: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  const target = await stores().create(to);
  try {
    for await (const chunk of chunks) await target.write(chunk);
    await target.complete();
  } catch (error) {
    await target.abort().catch(() => {});
    throw error;
  }
}

/** Throws CannotRestore, or the error of the file or store. */
export async function restoreFrom(from: string, dataDir: string): Promise<Restored> {
  const problem = isInBucket(from) ? pathProblem(from) : undefined;
  if (problem !== undefined) throw new CannotRestore(problem);
  return restoreBackup(readerOf(from), dataDir);
}

function readerOf(from: string): Readable {
  // A pipe.
  if (from === "-") return process.stdin;
  return isInBucket(from) ? Readable.from(bytesOf(from)) : createReadStream(from);
}

async function* bytesOf(from: string): AsyncGenerator<Buffer> {
  const object = await stores().open(from);
  try {
    for (let at = 0; ; ) {
      const buffer = Buffer.allocUnsafe(READ_BYTES);
      const bytes = await object.read(buffer, 0, at, buffer.length);
      if (bytes === 0) return;
      yield buffer.subarray(0, bytes);
      at += bytes;
    }
  } finally {
    await object.close();
  }
}

function isInBucket(address: string): boolean {
  return BUCKET_SCHEMES.some((scheme) => address.startsWith(`${scheme}://`));
}

/** Buckets only, with the credentials of whoever runs the command. */
function stores(): ObjectStore {
  const none = { roots: [], dataDir: "", outputsDirectory: "", temporaryDirectory: "" };
  return openStores({ ...none, env: serverEnvironment });
}
