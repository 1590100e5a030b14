/**
 * The memory of workers, four times a second: what each and its children use, and the end of whoever is over its limit. It
 * watches, it does not isolate: a worker can take the machine's memory between two looks, and a child that left its
 * parents is not seen. Where there is no /proc it sees nothing. Shared pages are counted once (PSS) near the limit only: that
 * costs the kernel more.
 */
import { readdirSync, readFileSync } from "node:fs";

const LOOK_MS = 250;
/** From this part of the limit on, shared pages matter. */
const NEAR = 0.8;

export interface Watched {
  /** The most that was seen, in bytes; undefined before the first look. */
  peakBytes: number | undefined;
  /** It was ended for its memory. */
  isOverLimit: boolean;
}

interface Entry extends Watched {
  pid: number;
  limitBytes: number | undefined;
  onOver: (bytes: number) => void;
}

export class MemoryWatch {
  private readonly entries = new Set<Entry>();
  private timer: NodeJS.Timeout | undefined;
  /** The kernel's count of processes that it killed for memory, at the last looks. */
  private kernelKills: number[] = [];

  /** `onOver` is called once, with what it uses. */
  add(pid: number, limitBytes: number | undefined, onOver: (bytes: number) => void): Watched {
    const entry: Entry = { pid, limitBytes, onOver, peakBytes: undefined, isOverLimit: false };
    this.entries.add(entry);
    this.timer ??= setInterval(() => this.look(), LOOK_MS).unref();
    if (this.kernelKills.length === 0) this.kernelKills = [kernelKills()];
    return entry;
  }

  remove(watched: Watched): void {
    this.entries.delete(watched as Entry);
    if (this.entries.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
    this.kernelKills = [];
  }

  /** Whether the kernel has killed a process for memory within the last half a second. */
  hasKernelKilled(): boolean {
    return kernelKills() > (this.kernelKills[0] ?? Number.POSITIVE_INFINITY);
  }

  private look(): void {
    this.kernelKills = [...this.kernelKills.slice(-1), kernelKills()];
    for (const entry of this.entries) {
      const tree = processTree(entry.pid);
      let bytes = sum(tree, residentBytes);
      const { limitBytes } = entry;
      if (limitBytes !== undefined && bytes > NEAR * limitBytes && tree.length > 1)
        bytes = sum(tree, proportionalBytes);
      entry.peakBytes = Math.max(entry.peakBytes ?? 0, bytes);
      if (limitBytes === undefined || bytes <= limitBytes || entry.isOverLimit) continue;
      entry.isOverLimit = true;
      entry.onOver(bytes);
    }
  }
}

/** A process and what it started, as far as they are still its children. */
export function processTree(pid: number): number[] {
  const found = [pid];
  for (const parent of found) {
    for (const thread of entriesOf(`/proc/${parent}/task`))
      for (const child of textOf(`/proc/${parent}/task/${thread}/children`).split(" "))
        if (child !== "") found.push(Number(child));
  }
  return found;
}

function sum(pids: readonly number[], bytesOf: (pid: number) => number): number {
  return pids.reduce((total, pid) => total + bytesOf(pid), 0);
}

function residentBytes(pid: number): number {
  return kilobytes(textOf(`/proc/${pid}/status`), "VmRSS");
}

function proportionalBytes(pid: number): number {
  return kilobytes(textOf(`/proc/${pid}/smaps_rollup`), "Pss");
}

function kilobytes(text: string, name: string): number {
  return 1024 * Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0);
}

/** Processes that the kernel has killed for memory since it was booted, in any of its memory groups. */
function kernelKills(): number {
  return Number(/^oom_kill (\d+)$/m.exec(textOf("/proc/vmstat"))?.[1] ?? 0);
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    // The process is gone, or this is no Linux.
    return "";
  }
}

function entriesOf(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
