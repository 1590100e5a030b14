/**
 * Gives each worker a control group (cgroup v2) inside the delegated one (delegated-cgroup.ts). The kernel kills the
 * whole group if it needs more than its limit. The group includes all processes that the worker started, even detached
 * ones.
 */
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { delay } from "../../base/clock.ts";
import { groupOf } from "../delegated-cgroup.ts";

/** Killed processes stay in their group for a moment. */
const REMOVE_EVERY_MS = 20;
const REMOVE_TRIES = 100;

export class MemoryGroups {
  private readonly directory: string | undefined;
  private readonly removals = new Set<Promise<void>>();

  /** `directory` is the delegated group; undefined if there is none. */
  constructor(directory: string | undefined) {
    this.directory = directory;
    if (directory !== undefined) removeEmpty(directory);
  }

  get areThere(): boolean {
    return this.directory !== undefined;
  }

  /** Puts a process that was just started into a new group. Undefined if that fails. */
  enclose(workerId: string, pid: number, limitBytes: number | undefined): MemoryGroup | undefined {
    if (this.directory === undefined) return undefined;
    const path = join(this.directory, workerId);
    try {
      mkdirSync(path);
      // Kill all of the worker's processes together: a part of a worker is of no use.
      writeFileSync(join(path, "memory.oom.group"), "1");
      if (limitBytes !== undefined) limit(path, limitBytes);
      writeFileSync(join(path, "cgroup.procs"), String(pid));
      return new MemoryGroup(path);
    } catch {
      // The process is gone, or the delegation was revoked. The caller then watches the memory.
      this.remove(new MemoryGroup(path));
      return undefined;
    }
  }

  /** The group of a worker that an earlier controller started, possibly in another parent group. */
  find(workerId: string, pid: number): MemoryGroup | undefined {
    const path = groupOf(pid);
    return path !== undefined && basename(path) === workerId ? new MemoryGroup(path) : undefined;
  }

  /** Kills what is left of a worker. */
  clear(workerId: string): void {
    if (this.directory !== undefined) this.remove(new MemoryGroup(join(this.directory, workerId)));
  }

  /** Kills what is left in the group of a worker that has ended, and removes the group. `settled` waits for that. */
  remove(group: MemoryGroup): void {
    const removal = group.remove().finally(() => this.removals.delete(removal));
    this.removals.add(removal);
  }

  /** Resolves once all these groups are removed, or two seconds after the request. */
  async settled(): Promise<void> {
    await Promise.all(this.removals);
  }
}

export class MemoryGroup {
  private readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /**
   * Why the kernel killed the group: it exceeded its limit, or the machine ran out of memory. Undefined if the kernel
   * did not.
   */
  get outOfMemory(): "limit" | "kernel" | undefined {
    const events = textOf(join(this.path, "memory.events"));
    const count = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, "m").exec(events)?.[1] ?? 0);
    if (count("oom_kill") === 0) return undefined;
    return count("oom") > 0 ? "limit" : "kernel";
  }

  /** Kills all processes of the group. */
  kill(): void {
    try {
      writeFileSync(join(this.path, "cgroup.kill"), "1");
    } catch {
      // The group is gone, or this kernel is older than 5.14. The caller has signalled the process group too.
    }
  }

  /** Kills what is left in the group, and removes it. */
  async remove(): Promise<void> {
    this.kill();
    for (let tries = 0; tries < REMOVE_TRIES && !isRemoved(this.path); tries++) await delay(REMOVE_EVERY_MS);
  }
}

function limit(path: string, bytes: number): void {
  writeFileSync(join(path, "memory.max"), String(bytes));
  try {
    // With swap, a worker over its limit would only become slow.
    writeFileSync(join(path, "memory.swap.max"), "0");
  } catch {
    // This kernel has no swap.
  }
}

/** Removes groups that an earlier controller left behind. */
function removeEmpty(directory: string): void {
  for (const entry of readdirSync(directory, { withFileTypes: true }))
    if (entry.isDirectory()) isRemoved(join(directory, entry.name));
}

/** False while the group contains processes. */
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
