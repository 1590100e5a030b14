/**
 * Removes a directory with all that is in it, in slices. Node's own removal begins with all entries of a directory at
 * once: 30,000 files kept the event loop for half a second.
 */
import { readdirSync, rmdirSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { TimeSlices } from "../base/clock.ts";
import { SLICE_MS } from "../contracts/limits/event-loop.ts";

/** Does nothing if it is not there. */
export async function removeTree(path: string): Promise<void> {
  await remove(path, new TimeSlices(SLICE_MS)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
}

async function remove(directory: string, slices: TimeSlices): Promise<void> {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (slices.isOver) await slices.rest();
    const path = join(directory, entry.name);
    if (entry.isDirectory()) await remove(path, slices);
    else unlinkSync(path);
  }
  rmdirSync(directory);
}
