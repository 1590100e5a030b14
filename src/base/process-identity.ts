/**
 * Identifies a process by its id and its start time, because ids are reused. The start time comes from /proc on Linux,
 * and from `ps` elsewhere.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { wallMs } from "./clock.ts";

/**
 * The kernel's start time of a live process, as an opaque text. Undefined if there is no such process; a zombie counts
 * as none.
 */
export function processStartTime(pid: number): string | undefined {
  return process.platform === "linux" ? fromProc(pid) : fromPs(pid);
}

/**
 * How long ago a process with this start time started, in milliseconds; undefined if the text cannot be read. The kernel
 * counts start times in hundredths of a second since the boot.
 */
export function processAgeMs(startTime: string): number | undefined {
  try {
    const ageMs =
      process.platform === "linux"
        ? Number(readFileSync("/proc/uptime", "latin1").split(" ")[0]) * 1_000 - Number(startTime) * 10
        : wallMs() - Date.parse(startTime);
    return Number.isFinite(ageMs) ? Math.max(0, ageMs) : undefined;
  } catch {
    return undefined;
  }
}

/** The fields of /proc/PID/stat from the third on (proc(5)). Throws if there is no such process. */
export function statFields(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  // The command name is in parentheses and may hold anything: fields are counted from the last parenthesis.
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

function fromProc(pid: number): string | undefined {
  try {
    const fields = statFields(pid);
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

function fromPs(pid: number): string | undefined {
  try {
    return execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" }).trim() || undefined;
  } catch {
    return undefined;
  }
}

/** The program of a process, with its arguments; undefined if there is no such process. */
export function programOf(pid: number): string | undefined {
  try {
    return process.platform === "linux"
      ? readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ")
      : execFileSync("ps", ["-o", "args=", "-p", String(pid)], { encoding: "utf8" });
  } catch {
    return undefined;
  }
}

export function isSameProcess(pid: number, startTime: string): boolean {
  return processStartTime(pid) === startTime;
}

/** Signals the whole process group that `pid` leads, or only `pid` if it leads none. False if there is neither. */
export function signalGroup(pid: number, signal: NodeJS.Signals): boolean {
  for (const target of [-pid, pid]) {
    try {
      process.kill(target, signal);
      return true;
    } catch {
      // No such group or process: the next target, then false.
    }
  }
  return false;
}

/**
 * Identifies a boot of the machine: the text stays the same until the next boot. Undefined if the system has no such
 * text.
 */
export function bootId(): string | undefined {
  try {
    return process.platform === "linux"
      ? readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim()
      : execFileSync("sysctl", ["-n", "kern.boottime"], { encoding: "utf8" }).trim();
  } catch {
    return undefined;
  }
}
