/**
 * Files beside the packages of an environment: a mark that it is complete, and a file per user. The mark's time says
 * when the environment was last needed. All functions but `deleteTaken` are synchronous: nothing can happen between
 * checking an environment and removing it.
 */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { shortageOf } from "../../base/disk-full.ts";
import { removeTree } from "../../base/files/remove-tree.ts";
import type { EnvironmentState } from "./environment-uses.ts";

/** The mark is written last: an environment without it is incomplete. */
const COMPLETE = ".quern-complete";
const USES = ".quern-uses";
const ID = /^[0-9a-f]{24}$/;
/** Renamed, and about to be deleted. */
const REMOVED = ".removed-";

export function isWhole(directory: string): boolean {
  return existsSync(join(directory, COMPLETE));
}

export function markWhole(directory: string): void {
  writeFileSync(join(directory, COMPLETE), "");
}

/** Records that this user needs the environment now. */
export function noteUse(directory: string, user: string, nowMs: number): void {
  try {
    mkdirSync(join(directory, USES), { recursive: true });
    writeFileSync(join(directory, USES, user), "");
    setTime(join(directory, USES, user), nowMs);
    noteNeed(directory, nowMs);
  } catch (error) {
    // On a full disk the use is not recorded. The environment is then removed too early, and created again.
    if (shortageOf(error) === undefined) throw error;
  }
}

export function noteNeed(directory: string, nowMs: number): void {
  if (isWhole(directory)) setTime(join(directory, COMPLETE), nowMs);
}

export function forgetUse(directory: string, user: string): void {
  rmSync(join(directory, USES, user), { force: true });
}

export function environmentsIn(root: string, nowMs: number): EnvironmentState[] {
  if (!existsSync(root)) return [];
  return readdirSync(root)
    .filter((name) => ID.test(name))
    .map((id) => stateOf(root, id, nowMs));
}

function stateOf(root: string, id: string, nowMs: number): EnvironmentState {
  const directory = join(root, id);
  const uses = join(directory, USES);
  // An older release created it, and did not record its users.
  if (isWhole(directory) && !existsSync(uses)) {
    mkdirSync(uses);
    noteNeed(directory, nowMs);
  }
  const users = existsSync(uses) ? readdirSync(uses) : [];
  return {
    id,
    neededMs: neededMsOf(directory),
    uses: new Map(users.map((user) => [user, statSync(join(uses, user)).mtimeMs])),
  };
}

/** An incomplete environment was last needed at the last attempt to create it. */
function neededMsOf(directory: string): number {
  return statSync(isWhole(directory) ? join(directory, COMPLETE) : directory).mtimeMs;
}

/** Renames an environment, unless it was needed meanwhile. Returns whether it did. */
export function takeAway(root: string, { id, neededMs }: EnvironmentState): boolean {
  const directory = join(root, id);
  if (!existsSync(directory) || neededMsOf(directory) !== neededMs) return false;
  renameSync(directory, join(root, `${REMOVED}${id}`));
  return true;
}

/** Deletes the renamed environments, including those of a server that was killed. Thousands of files take a while. */
export async function deleteTaken(root: string): Promise<void> {
  if (!existsSync(root)) return;
  for (const name of readdirSync(root).filter((entry) => entry.startsWith(REMOVED)))
    await removeTree(join(root, name));
}

function setTime(file: string, ms: number): void {
  utimesSync(file, ms / 1000, ms / 1000);
}
