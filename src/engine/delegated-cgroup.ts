/**
 * A control group that the operator delegated to Quern (cgroup v2; "Delegation" in the kernel's admin-guide/cgroup-v2,
 * `Delegate=` in systemd.resource-control(5)). Quern uses the group if it is marked as delegated, is writable, and has
 * no other processes. The kernel then enforces each worker's memory limit (memory-groups.ts).
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";

const MOUNT = "/sys/fs/cgroup";
/**
 * The group that the server itself moves into: a group whose children have memory limits must not contain processes.
 */
const LEAF = "quern";
/**
 * systemd sets these to "1" on groups that it delegates. The first exists since version 251; only root can read the
 * other one.
 */
const MARKS = ["user.delegate", "trusted.delegate"];
/** A Python program, because Node cannot read extended attributes. */
const READ_MARKS = `
import os, sys
for name in sys.argv[2:]:
    try: print(os.getxattr(sys.argv[1], name).decode())
    except OSError: pass
`;
/** Long, because a machine that starts everything at once is busy. Without a result, workers would have no limits. */
const READ_MS = 30_000;

/**
 * Prepares this process's group, so that its children can have memory limits. Returns its directory; undefined if it is
 * not delegated. `python` is any interpreter.
 */
export function claimDelegatedCgroup(python: string): string | undefined {
  const own = groupOf("self");
  if (own === undefined) return undefined;
  try {
    // The root of all groups has no type. Nobody can delegate it.
    if (wordsOf(join(own, "cgroup.type"))[0] !== "domain") return undefined;
    if (!wordsOf(join(own, "cgroup.controllers")).includes("memory")) return undefined;
    const there = wordsOf(join(own, "cgroup.procs"));
    const ours = new Set(selfAndAncestors());
    const isOurs = there.every((pid) => ours.has(pid)) && isDelegated(own, python);
    return isOurs && moveInto(own, there) ? own : undefined;
  } catch {
    // There is no cgroup v2, or this process cannot see it.
    return undefined;
  }
}

/**
 * A service manager may take back, at any time, what it has not delegated. The root that a container sees was delegated
 * with it.
 */
function isDelegated(group: string, python: string): boolean {
  if (relative(MOUNT, group) === "") return true;
  const marks = execFileSync(python, ["-I", "-S", "-c", READ_MARKS, group, ...MARKS], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    timeout: READ_MS,
  });
  return marks.split("\n").includes("1");
}

/** The directory of a process's group; undefined if there is no cgroup v2. */
export function groupOf(pid: number | "self"): string | undefined {
  try {
    const path = /^0::(\/.*)$/m.exec(readFileSync(`/proc/${pid}/cgroup`, "latin1"))?.[1];
    return path === undefined || path.startsWith("/..") ? undefined : join(MOUNT, path);
  } catch {
    return undefined;
  }
}

/** Moves the server, and the shell or npm that started it: they wait in the same group. */
function moveInto(own: string, pids: readonly string[]): boolean {
  const leaf = join(own, LEAF);
  const move = (to: string) => {
    for (const pid of pids) writeFileSync(join(to, "cgroup.procs"), pid);
  };
  try {
    mkdirSync(leaf, { recursive: true });
    move(leaf);
    writeFileSync(join(own, "cgroup.subtree_control"), "+memory");
    return true;
  } catch {
    // The group is read-only or belongs to another user. Restore the former state.
    try {
      move(own);
      rmdirSync(leaf);
    } catch {
      // The leaf was not even created.
    }
    return false;
  }
}

/**
 * Only those that this process can see. A service with `ProtectProc=invisible` sees no processes of other users, and
 * could not move them either.
 */
function selfAndAncestors(): string[] {
  const pids: string[] = [];
  for (let pid = String(process.pid); Number(pid) > 0; ) {
    pids.push(pid);
    const stat = statOf(pid);
    if (stat === undefined) break;
    pid = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]!;
  }
  return pids;
}

function statOf(pid: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return undefined;
  }
}

function wordsOf(file: string): string[] {
  return readFileSync(file, "latin1").split(/\s+/).filter(Boolean);
}
