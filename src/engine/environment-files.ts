/**
 * What is beside the packages in an environment's directory: the mark that it is whole, whose time says when it was last needed, and
 * a file for each user. Each function acts at once, so that nothing comes between a look at an environment and its removal.
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
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { shortageOf } from "../base/disk-full.ts";
import type { EnvironmentState } from "./environment-uses.ts";

/** Written last: an environment without it is not whole. */
const COMPLETE = ".quern-complete";
const USES = ".quern-uses";
const ID = /^[0-9a-f]{24}$/;
/** Out of the way, and about to be deleted. */
const REMOVED = ".removed-";

export function isWhole(directory: string): boolean {
  return existsSync(join(directory, COMPLETE));
}

export function markWhole(directory: string): void {
  writeFileSync(join(directory, COMPLETE), "");
}

/** It is needed now, by this user. */
export function noteUse(directory: string, user: string, nowMs: number): void {
  try {
    mkdirSync(join(directory, USES), { recursive: true });
    writeFileSync(join(directory, USES, user), "");
    setTime(join(directory, USES, user), nowMs);
    noteNeed(directory, nowMs);
  } catch (error) {
    // On a full disk it is forgotten sooner, and made again.
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
  // A release before this one made it, and has not said for whom.
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

/** One that is not whole was last needed when somebody last tried to make it. */
function neededMsOf(directory: string): number {
  return statSync(isWhole(directory) ? join(directory, COMPLETE) : directory).mtimeMs;
}

/** Takes it out of the way, unless it was needed meanwhile. Whether it is gone. */
export function takeAway(root: string, { id, neededMs }: EnvironmentState): boolean {
  const directory = join(root, id);
  if (!existsSync(directory) || neededMsOf(directory) !== neededMs) return false;
  renameSync(directory, join(root, `${REMOVED}${id}`));
  return true;
}

/** Deletes what was taken out of the way, by a server that was killed too; thousands of files take a while. */
export async function deleteTaken(root: string): Promise<void> {
  if (!existsSync(root)) return;
  for (const name of readdirSync(root).filter((entry) => entry.startsWith(REMOVED)))
    await rm(join(root, name), { recursive: true, force: true });
}

function setTime(file: string, ms: number): void {
  utimesSync(file, ms / 1000, ms / 1000);
}
