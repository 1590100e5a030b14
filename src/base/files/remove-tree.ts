/**
 * Removes a directory with all that is in it, in slices. Node's own removal begins with all entries of a directory at
 * once: 30,000 files kept the event loop for half a second.
 */
import { lstatSync, opendirSync, rmdirSync } from "node:fs";
import { unlink } from "node:fs/promises";
import { join } from "node:path";
import { TimeSlices } from "../loop/turns.ts";

const SLICE_MS = 10;
/** A process that is still ending may write a file into a directory that has just been walked. */
const WALKS_MAX = 10;
/** Removals at the same time share them. */
const slices = new TimeSlices(SLICE_MS);

/** Removes a file as well, and does not follow links. Does nothing if there is nothing of this name. */
export async function removeTree(path: string): Promise<void> {
  if (slices.isOver) await slices.rest();
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (found.isDirectory()) await removeDirectory(path);
  else await removeFile(path);
}

async function removeDirectory(path: string): Promise<void> {
  for (let walks = 1; await empty(path); walks++) {
    try {
      rmdirSync(path);
      return;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT") return;
      if (code !== "ENOTEMPTY" || walks === WALKS_MAX) throw error;
    }
  }
}

/** Returns whether the directory is there: somebody else may remove the same at the same time. */
async function empty(path: string): Promise<boolean> {
  const directory = ifThere(() => opendirSync(path));
  if (directory === undefined) return false;
  try {
    for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
      if (slices.isOver) await slices.rest();
      const inside = join(path, entry.name);
      if (entry.isDirectory()) await removeDirectory(inside);
      else await removeFile(inside);
    }
  } finally {
    directory.closeSync();
  }
  return true;
}

/** Beside the event loop: a file of gigabytes takes a tenth of a second. */
async function removeFile(path: string): Promise<void> {
  await unlink(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
}

function ifThere<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
