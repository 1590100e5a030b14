/**
 * Sockets and notes of workers that ended when no controller was there to remove them: it was killed, or it stopped
 * within the seconds for which the files of a dead worker stay.
 */
import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { contain } from "../../base/boundary.ts";
import { wallMs } from "../../base/clock.ts";

const NAME = /^([br]-[0-9a-f]{8})\.(sock|note)$/;
/** A former controller that was stopped for a while may just have started a worker. */
const YOUNG_MS = 60_000;

/** `known`: the ids of workers that may run. */
export function removeLeftFiles(directory: string, known: ReadonlySet<string>): void {
  // It may have been removed while no controller ran; it is made again with the first worker.
  for (const name of existsSync(directory) ? readdirSync(directory) : []) {
    const id = NAME.exec(name)?.[1];
    if (id === undefined || known.has(id)) continue;
    // One that cannot be removed, such as a directory of that name, must not keep the server from starting.
    contain(`the left file ${name}`, () => removeOld(join(directory, name)));
  }
}

function removeOld(path: string): void {
  const changedMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY;
  if (wallMs() - changedMs > YOUNG_MS) rmSync(path, { force: true });
}
