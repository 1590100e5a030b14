/**
 * A control group that the operator gave us (cgroup v2; "Delegation" in the kernel's admin-guide/cgroup-v2, `Delegate=` in
 * systemd.resource-control(5)). It is taken where it is marked as given, nobody else's process is in it and it may be written;
 * then the kernel holds each worker to its memory (memory-groups.ts).
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";

const MOUNT = "/sys/fs/cgroup";
/** Where we go ourselves: a group that has groups with memory of their own may have no processes. */
const LEAF = "quern";
/** What systemd sets on groups that it gave away, to "1": the first since version 251, the other one for root's eyes. */
const MARKS = ["user.delegate", "trusted.delegate"];
/** Node cannot read extended attributes. */
const READ_MARKS = `
import os, sys
for name in sys.argv[2:]:
    try: print(os.getxattr(sys.argv[1], name).decode())
    except OSError: pass
`;
/** A machine that starts everything at once is busy, and without an answer workers would be without their limits. */
const READ_MS = 30_000;

/**
 * Makes the group that we are in one whose groups can have limits on memory. Its directory; undefined where it is not ours.
 * `python` is any interpreter.
 */
export function claimOwnGroup(python: string): string | undefined {
  const own = groupOf("self");
  if (own === undefined) return undefined;
  try {
    // The root of all groups has no type: that is nobody's to give.
    if (wordsOf(join(own, "cgroup.type"))[0] !== "domain") return undefined;
    if (!wordsOf(join(own, "cgroup.controllers")).includes("memory")) return undefined;
    const there = wordsOf(join(own, "cgroup.procs"));
    const ours = new Set(selfAndAncestors());
    const isOurs = there.every((pid) => ours.has(pid)) && isDelegated(own, python);
    return isOurs && moveInto(own, there) ? own : undefined;
  } catch {
    // No cgroup v2, or one that is hidden from us.
    return undefined;
  }
}

/** A service manager takes back, at any time, what it has not given away. The root that a container sees was given with it. */
function isDelegated(group: string, python: string): boolean {
  if (relative(MOUNT, group) === "") return true;
  const marks = execFileSync(python, ["-I", "-S", "-c", READ_MARKS, group, ...MARKS], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    timeout: READ_MS,
  });
  return marks.split("\n").includes("1");
}

/** The directory of a process's group; undefined where there is no cgroup v2. */
export function groupOf(pid: number | "self"): string | undefined {
  try {
    const path = /^0::(\/.*)$/m.exec(readFileSync(`/proc/${pid}/cgroup`, "latin1"))?.[1];
    return path === undefined || path.startsWith("/..") ? undefined : join(MOUNT, path);
  } catch {
    return undefined;
  }
}

/** Whoever started us, a shell or npm, waits in the same group and moves along. */
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
    // Read-only, or another user's: all as it was.
    try {
      move(own);
      rmdirSync(leaf);
    } catch {
      // It was not even made.
    }
    return false;
  }
}

/** As far as they are shown to us: a service with `ProtectProc=invisible` sees no process of other users, which it could not move either. */
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
