/**
 * Whether a process is a worker of this data directory. Its id and start time are in the rows of a copied directory too: the instance in its
 * environment is not. Nothing is ended that is not ours.
 */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { dirname, sep } from "node:path";
import { isSameProcess } from "../base/process-identity.ts";
import { WORKER_OOM_SCORE } from "../contracts/limits.ts";
import type { WorkerIdentity } from "./engine.ts";

export const INSTANCE_VARIABLE = "QUERN_INSTANCE";
const OOM_SCORE_MAX = 1000;

export interface Owner {
  instanceId: string;
  runtimeDir: string;
  dataDir: string;
}

export function isOurWorker(identity: WorkerIdentity, owner: Owner): boolean {
  const { pid, process_start, instance_id, socket } = identity;
  if (!isSameProcess(pid, process_start)) return false;
  // A release without instances started it: the directory of its socket comes from the path of its data directory.
  if (!instance_id) return dirname(socket) === owner.runtimeDir;
  if (instance_id !== owner.instanceId) return false;
  const inEnvironment = instanceOf(pid);
  // A library that sets the process's title writes it over the environment.
  return inEnvironment === undefined ? hasOpen(pid, owner.dataDir) : inEnvironment === owner.instanceId;
}

/** What a process was started with; undefined where that cannot be read any more. */
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

/** Whether it works in the directory, or has a file of it open: its project, its log. */
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

/** Without memory the kernel ends a worker, which is started again, and not the parent or the controller. */
export function spareTheServer(workerPid: number): void {
  try {
    const own = Number(readFileSync("/proc/self/oom_score_adj", "latin1"));
    const score = Math.min(OOM_SCORE_MAX, own + WORKER_OOM_SCORE);
    writeFileSync(`/proc/${workerPid}/oom_score_adj`, String(score));
  } catch {
    // Not Linux, or the worker is gone already.
  }
}
