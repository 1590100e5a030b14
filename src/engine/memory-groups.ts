/**
 * A control group for each worker (cgroup v2) in the one that we were given (own-group.ts): the kernel ends all of it when it needs
 * more than its limit, with what it started, however far that went from its parents.
 */
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { delay } from "../base/clock.ts";
import { groupOf } from "./own-group.ts";

/** Processes that were killed are in their group for a moment yet. */
const REMOVE_EVERY_MS = 20;
const REMOVE_TRIES = 100;

export class MemoryGroups {
  private readonly directory: string | undefined;
  private readonly removals = new Set<Promise<void>>();

  /** `directory`: the group that we were given; undefined where there is none. */
  constructor(directory: string | undefined) {
    this.directory = directory;
    if (directory !== undefined) removeEmpty(directory);
  }

  get areThere(): boolean {
    return this.directory !== undefined;
  }

  /** Puts a process that was just started into a group of its own. Undefined where that cannot be. */
  enclose(workerId: string, pid: number, limitBytes: number | undefined): MemoryGroup | undefined {
    if (this.directory === undefined) return undefined;
    const path = join(this.directory, workerId);
    try {
      mkdirSync(path);
      // All of the worker or nothing: what is left of one is of no use.
      writeFileSync(join(path, "memory.oom.group"), "1");
      if (limitBytes !== undefined) limit(path, limitBytes);
      writeFileSync(join(path, "cgroup.procs"), String(pid));
      return new MemoryGroup(path);
    } catch {
      // The process is gone, or the group was taken from us: whoever asked watches.
      this.remove(new MemoryGroup(path));
      return undefined;
    }
  }

  /** The group of a worker that an earlier controller started, maybe in another place. */
  find(workerId: string, pid: number): MemoryGroup | undefined {
    const path = groupOf(pid);
    return path !== undefined && basename(path) === workerId ? new MemoryGroup(path) : undefined;
  }

  /** Ends what is left of a worker. */
  clear(workerId: string): void {
    if (this.directory !== undefined) this.remove(new MemoryGroup(join(this.directory, workerId)));
  }

  /** Ends what is left in the group of a worker that has ended, and takes the group away: `settled` tells when. */
  remove(group: MemoryGroup): void {
    const removal = group.remove().finally(() => this.removals.delete(removal));
    this.removals.add(removal);
  }

  /** Resolves when every group is away that was to be removed, or two seconds after it was asked for. */
  async settled(): Promise<void> {
    await Promise.all(this.removals);
  }
}

export class MemoryGroup {
  private readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /** Why the kernel has killed it: it was over its own limit, or there was no memory elsewhere. Undefined: it has not. */
  get outOfMemory(): "limit" | "kernel" | undefined {
    const events = textOf(join(this.path, "memory.events"));
    const count = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, "m").exec(events)?.[1] ?? 0);
    if (count("oom_kill") === 0) return undefined;
    return count("oom") > 0 ? "limit" : "kernel";
  }

  /** All that is in it. */
  kill(): void {
    try {
      writeFileSync(join(this.path, "cgroup.kill"), "1");
    } catch {
      // It is gone, or this kernel is older than 5.14: who asks has signalled the process group.
    }
  }

  /** Ends what is left in it, and takes it away. */
  async remove(): Promise<void> {
    this.kill();
    for (let tries = 0; tries < REMOVE_TRIES && !isRemoved(this.path); tries++) await delay(REMOVE_EVERY_MS);
  }
}

function limit(path: string, bytes: number): void {
  writeFileSync(join(path, "memory.max"), String(bytes));
  try {
    // Swapped out it would be over its limit all the same, and slow.
    writeFileSync(join(path, "memory.swap.max"), "0");
  } catch {
    // This kernel has no swap.
  }
}

/** What an earlier controller had no time to take away. */
function removeEmpty(directory: string): void {
  for (const entry of readdirSync(directory, { withFileTypes: true }))
    if (entry.isDirectory()) isRemoved(join(directory, entry.name));
}

/** False while there are processes in it. */
function isRemoved(path: string): boolean {
  try {
    rmdirSync(path);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "EBUSY";
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
