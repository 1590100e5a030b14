/**
 * Makes a data directory from a backup. Nothing appears under its name before all checksums are right. The directory is
 * a new instance, so it leaves the workers of the original alone; its jobs go on (docs/decisions/0029-backups.md).
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm, rmdir } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { UnpackSync } from "tar";
import { removeTree } from "../base/files/remove-tree.ts";
import { sync } from "../base/files/sync.ts";
import { newToken } from "../base/ids.ts";
import { databaseFile } from "../contracts/data-layout.ts";
import { first, type Statements } from "../database/database.ts";
import { newInstanceId, writeInstance } from "../database/instance.ts";
import { recordInstance } from "../database/owner-row.ts";
import { SCHEMA_STEPS } from "../database/schema-steps.ts";
import { openSqliteDatabase } from "../database/sqlite.ts";
import { disownWorkers } from "../database/worker-rows.ts";
import { CannotRestore, CHECKSUMS, MANIFEST, readChecksums, readManifest } from "./manifest.ts";

const TYPES: ReadonlySet<string | undefined> = new Set(["File", "OldFile", "ContiguousFile", "Directory"]);

export interface Restored {
  /** When the backup was taken. */
  taken_time: string;
  apis: number;
  jobs: number;
  /** Jobs that go on. */
  unfinished: number;
}

/** Throws CannotRestore. `dataDir` must be missing or empty. */
export async function restoreBackup(archive: Readable, dataDir: string): Promise<Restored> {
  const target = resolve(dataDir);
  assertUnused(target);
  await mkdir(dirname(target), { recursive: true });
  const work = join(dirname(target), `.${basename(target)}.restoring-${newToken().slice(0, 8)}`);
  await mkdir(work, { mode: 0o700 });
  try {
    await unpack(archive, work);
    const manifest = readManifest(await textOf(work, MANIFEST), SCHEMA_STEPS.length);
    await check(work);
    for (const name of [MANIFEST, CHECKSUMS]) await rm(join(work, name));
    const counts = await makeInstance(work);
    assertUnused(target);
    if (existsSync(target)) await rmdir(target);
    await rename(work, target);
    await sync(dirname(target));
    return { taken_time: manifest.created_time, ...counts };
  } finally {
    await removeTree(work);
  }
}

function assertUnused(target: string): void {
  if (existsSync(target) && readdirSync(target).length > 0)
    throw new CannotRestore(`${target} is in use: it is not empty; give a new directory as --data-dir`);
}

async function unpack(archive: Readable, work: string): Promise<void> {
  let refused: string | undefined;
  const filter = (path: string, entry: { size: number; type?: string }) => {
    if (!TYPES.has(entry.type)) refused ??= path;
    return refused === undefined;
  };
  try {
    // Writes each file before it returns, so nothing is written after a failure, when the directory is removed.
    await pipeline(archive, new UnpackSync({ cwd: work, strict: true, filter }));
  } catch (error) {
    if (!isOfArchive(error)) throw error;
    throw new CannotRestore(`it is no whole archive (${(error as Error).message}); fetch it again`);
  }
  if (refused !== undefined)
    throw new CannotRestore(`its entry ${refused} is no file; a backup has no links`);
}

/** Not one of the disk, the network or a store. */
function isOfArchive(error: unknown): boolean {
  return /^(TAR_|Z_)/.test(String((error as { code?: unknown }).code));
}

async function textOf(work: string, name: string): Promise<string> {
  try {
    return await readFile(join(work, name), "utf8");
  } catch {
    throw new CannotRestore(`it has no ${name}: it was cut off, or is no backup; fetch it again`);
  }
}

/** Reads all files again, compares their checksums, and makes them durable. */
async function check(work: string): Promise<void> {
  const sums = readChecksums(await textOf(work, CHECKSUMS));
  const entries = await readdir(work, { recursive: true, withFileTypes: true });
  for (const { parentPath, name } of entries.filter((entry) => entry.isDirectory()))
    await sync(join(parentPath, name));
  const found = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const paths = new Set(found.map((file) => file.slice(work.length + 1)));
  for (const path of [...paths, ...sums.keys()])
    if (path !== CHECKSUMS && !(paths.has(path) && sums.get(path) === (await digestOf(join(work, path)))))
      throw new CannotRestore(
        `${path} in it is damaged or missing; fetch it again, or restore another backup`,
      );
}

async function digestOf(path: string): Promise<string> {
  // A project may have files that only root may write.
  const file = await open(path, "r");
  try {
    const hash = createHash("sha256");
    for await (const chunk of file.createReadStream({ autoClose: false })) hash.update(chunk as Buffer);
    await file.sync();
    return hash.digest("hex");
  } finally {
    await file.close();
  }
}

/** Gives the directory and its database a new id, and forgets the workers of the original. */
async function makeInstance(work: string): Promise<Omit<Restored, "taken_time">> {
  const id = newInstanceId();
  const db = openSqliteDatabase(databaseFile(work));
  try {
    await db.transaction(async (tx) => {
      await disownWorkers(tx);
      await recordInstance(tx, id);
    });
    writeInstance(work, id);
    return await countsOf(db);
  } finally {
    await db.close();
  }
}

async function countsOf(db: Statements): Promise<Omit<Restored, "taken_time">> {
  const counts = await first<Omit<Restored, "taken_time">>(
    db,
    `SELECT (SELECT count(*) FROM apis) AS apis, (SELECT count(*) FROM jobs) AS jobs,
       (SELECT count(*) FROM jobs WHERE end_time IS NULL) AS unfinished`,
  );
  return counts!;
}
