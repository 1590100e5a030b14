/**
 * A second name (hard link) for each file of a directory, so that a backup keeps files that are removed or replaced
 * while it is sent. The second pass is fast: a directory is read again only if a name in it has changed. Calls of the
 * system are synchronous, in slices: the other kind takes ten times as long, and nothing is committed meanwhile.
 */
import { type BigIntStats, constants, linkSync, lstatSync, mkdirSync, readdirSync } from "node:fs";
import { copyFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { wallMs } from "../base/clock.ts";
import { removeTree } from "../base/files/remove-tree.ts";
import { TimeSlices } from "../base/loop/turns.ts";
import { SLICE_MS } from "../contracts/limits/event-loop.ts";

/**
 * The one kind of file that is changed in its middle (batch/rows/own-file.ts): it is copied. All others are made once, or
 * grow at their end.
 */
const CHANGED_IN_PLACE = /^index\.\d+$/;
/** File systems count time in steps of at most this. What changed so recently may change again at the same time. */
const CLOCK_STEP_NS = 2_000_000_000n;

const UNKNOWN = -1n;

/** What is known of a directory: what the last pass has found. */
interface Known {
  /** When a name in it last changed, or UNKNOWN. */
  changedNs: bigint;
  directories: Map<string, Known>;
  /** Inodes of the linked files. */
  links: Map<string, bigint>;
  /** When the copied files were last changed, or UNKNOWN. */
  copies: Map<string, bigint>;
}

export class Mirror {
  private readonly source: string;
  private readonly target: string;
  private readonly known = unknownYet();
  private readonly slices = new TimeSlices(SLICE_MS);

  /** The parent of `target` must exist. */
  constructor(source: string, target: string) {
    this.source = source;
    this.target = target;
  }

  /** Brings the target to what the source has now. A source that is missing has nothing. */
  async update(): Promise<void> {
    await this.updateDirectory(this.source, this.target, this.known);
  }

  private async updateDirectory(source: string, target: string, known: Known): Promise<void> {
    if (this.slices.isOver) await this.slices.rest();
    const info = infoOf(source);
    // Its parent has changed then, and removes it from the target.
    if (info === undefined) return;
    if (known.changedNs !== info.mtimeNs) {
      // Taken before the names are read: a change that comes meanwhile has a later time, or is read.
      known.changedNs = stableTime(info);
      await this.compareNames(source, target, known);
    }
    for (const name of known.copies.keys()) await copyAgain(source, target, name, known.copies);
    for (const [name, child] of known.directories)
      await this.updateDirectory(join(source, name), join(target, name), child);
  }

  private async compareNames(source: string, target: string, known: Known): Promise<void> {
    mkdirSync(target, { recursive: true, mode: 0o700 });
    const entries = ifThere(() => readdirSync(source, { withFileTypes: true })) ?? [];
    await removeOthers(target, new Set(entries.map(({ name }) => name)), known);
    const { directories, links, copies } = known;
    for (const entry of entries) {
      const { name } = entry;
      if (this.slices.isOver) await this.slices.rest();
      if (entry.isDirectory()) directories.set(name, directories.get(name) ?? unknownYet());
      else if (CHANGED_IN_PLACE.test(name)) copies.set(name, copies.get(name) ?? UNKNOWN);
      else if (entry.isFile()) await linkAgain(source, target, name, links);
    }
  }
}

function unknownYet(): Known {
  return { changedNs: UNKNOWN, directories: new Map(), links: new Map(), copies: new Map() };
}

/** Removes what the source does not have any more. */
async function removeOthers(
  target: string,
  names: ReadonlySet<string>,
  { directories, links, copies }: Known,
): Promise<void> {
  for (const known of [directories, links, copies]) {
    for (const name of known.keys()) {
      if (names.has(name)) continue;
      known.delete(name);
      if (known === directories) await removeTree(join(target, name));
      else await rm(join(target, name), { force: true });
    }
  }
}

async function linkAgain(
  source: string,
  target: string,
  name: string,
  links: Map<string, bigint>,
): Promise<void> {
  const info = infoOf(join(source, name));
  if (info === undefined || links.get(name) === info.ino) return;
  if (links.has(name)) await rm(join(target, name), { force: true });
  ifThere(() => linkSync(join(source, name), join(target, name)));
  links.set(name, info.ino);
}

async function copyAgain(
  source: string,
  target: string,
  name: string,
  copies: Map<string, bigint>,
): Promise<void> {
  const info = infoOf(join(source, name));
  if (info === undefined || copies.get(name) === info.mtimeNs) return;
  copies.set(name, stableTime(info));
  await copyFile(join(source, name), join(target, name), constants.COPYFILE_FICLONE).catch(ignoreMissing);
}

function infoOf(path: string): BigIntStats | undefined {
  return lstatSync(path, { bigint: true, throwIfNoEntry: false });
}

/** When it last changed; UNKNOWN if another change may leave the same time. */
function stableTime({ mtimeNs }: BigIntStats): bigint {
  return BigInt(wallMs()) * 1_000_000n - mtimeNs < CLOCK_STEP_NS ? UNKNOWN : mtimeNs;
}

/** Undefined if it was removed meanwhile. */
function ifThere<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    return ignoreMissing(error);
  }
}

function ignoreMissing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
}
