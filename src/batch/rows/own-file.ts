/**
 * The file of the index, one for each controller that had the job. A controller that lost its parent may live on for
 * seconds beside the next one, and write entries whose commit is then refused. Its file is no longer read.
 */
import { constants, copyFile, type FileHandle, open, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { sync } from "../../base/files/sync.ts";
import { FormerOwner } from "../records/owned-job.ts";

const NAME = /^index\.(\d+)$/;

/** Opens the controller's own file. It has what the former controller committed. Throws FormerOwner. */
export async function openOwnIndex(directory: string, epoch: number): Promise<FileHandle> {
  const epochs = await epochsIn(directory);
  const newest = epochs.at(-1);
  if (newest !== undefined && newest > epoch) throw new FormerOwner();
  if (newest === undefined) await (await open(pathOf(directory, epoch), "a", 0o600)).close();
  else if (newest < epoch) await copyDurably(directory, newest, epoch);
  for (const former of epochs) if (former < epoch) await rm(pathOf(directory, former), { force: true });
  return open(pathOf(directory, epoch), "r+");
}

/** Whether a controller has made one. */
export async function hasIndex(directory: string): Promise<boolean> {
  return (await epochsIn(directory)).length > 0;
}

/** Rejects with ENOENT if there is none. */
export async function newestIndex(directory: string): Promise<string> {
  return pathOf(directory, (await epochsIn(directory)).at(-1) ?? 0);
}

/** In order. */
async function epochsIn(directory: string): Promise<number[]> {
  const names = await readdir(directory);
  const epochs = names.flatMap((name) => (NAME.test(name) ? [Number(NAME.exec(name)![1])] : []));
  return epochs.sort((a, b) => a - b);
}

async function copyDurably(directory: string, from: number, to: number): Promise<void> {
  const copy = join(directory, "index.new");
  await copyFile(pathOf(directory, from), copy, constants.COPYFILE_FICLONE);
  const file = await open(copy, "r+");
  try {
    await file.datasync();
  } finally {
    await file.close();
  }
  await rename(copy, pathOf(directory, to));
  await sync(directory);
}

function pathOf(directory: string, epoch: number): string {
  return join(directory, `index.${epoch}`);
}
