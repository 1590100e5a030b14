/**
 * Decides whether a process is a worker of this data directory. A copied directory has rows with the same process ids
 * and start times, but the instance in the worker's environment differs. Quern never ends other processes.
 */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { dirname, sep } from "node:path";
import { isSameProcess } from "../../base/process-identity.ts";
import { WORKER_OOM_SCORE } from "../../contracts/limits/processes.ts";
import type { WorkerIdentity } from "../engine.ts";

export const INSTANCE_VARIABLE = "QUERN_INSTANCE";
const OOM_SCORE_MAX = 1000;

export interface Owner {
  instanceId: string;
  runtimeDir: string;
  dataDir: string;
  /** Servers with other data directories have the same instance (`--state`), also on this machine. */
  isShared?: boolean;
}

export function isOurWorker(identity: WorkerIdentity, owner: Owner): boolean {
  const { pid, process_start, instance_id, socket } = identity;
  if (!isSameProcess(pid, process_start)) return false;
  // A release without instances started it. Then its socket's directory identifies the data directory, whose path it is
  // derived from.
  if (!instance_id) return dirname(socket) === owner.runtimeDir;
  if (instance_id !== owner.instanceId) return false;
  if (owner.isShared && dirname(socket) !== owner.runtimeDir) return false;
  const inEnvironment = instanceOf(pid);
  // A library that sets the process's title overwrites the environment.
  return inEnvironment === undefined ? hasOpen(pid, owner.dataDir) : inEnvironment === owner.instanceId;
}

/** The instance in a process's initial environment; undefined if that cannot be read any more. */
function instanceOf(pid: number): string | undefined {
  const pattern = new RegExp(`(?:^|[\\0 ])${INSTANCE_VARIABLE}=([0-9a-f]+)(?=[\\0 \\n]|$)`);
  try {
    const text =
      process.platform === "linux"
        ? readFileSync(`/proc/${pid}/environ`, "latin1")
        : execFileSync("ps", ["eww", "-o", "command=", "-p", String(pid)], { encoding: "latin1" });
    return pattern.exec(text)?.[1];
  } catch {
    return undefined;
  }
}

/** Whether the process works in the directory or has one of its files open, such as its project or its log. */
function hasOpen(pid: number, directory: string): boolean {
  try {
    const files = readdirSync(`/proc/${pid}/fd`).map((fd) => `/proc/${pid}/fd/${fd}`);
    return [`/proc/${pid}/cwd`, ...files].some((link) => linkOf(link).startsWith(directory + sep));
  } catch {
    return false;
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

/** Makes the kernel kill a worker when memory runs out, and not the parent or the controller. A worker is restarted. */
export function spareTheServer(workerPid: number): void {
  try {
    const own = Number(readFileSync("/proc/self/oom_score_adj", "latin1"));
    const score = Math.min(OOM_SCORE_MAX, own + WORKER_OOM_SCORE);
    writeFileSync(`/proc/${workerPid}/oom_score_adj`, String(score));
  } catch {
    // This is not Linux, or the worker is gone.
  }
}
