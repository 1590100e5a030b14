/**
 * Polls the memory of workers and their children four times a second, or less often while none of them uses the CPU.
 * A poll passes over those that do not seem to have run since the one before. A worker over its limit is ended. It does not
 * isolate: a worker can use up the machine's memory between two polls, and a child that left its parents is not seen.
 * Without /proc it measures nothing. Shared pages are counted once (PSS) only near the limit, because PSS costs the
 * kernel more.
 */
import { readdirSync, readFileSync } from "node:fs";
import { contain } from "../../base/boundary.ts";
import { every } from "../../base/loop/pulse.ts";
import { ProcessActivity } from "./process-activity.ts";

const POLL_MS = 250;
/** Without CPU time a process does not allocate memory. */
const IDLE_POLL_MS = 1_000;
/** ... and if nobody has a limit, only the figures of `quern get` and the metrics depend on it. */
const UNLIMITED_IDLE_POLL_MS = 4_000;
/** The kernel's count of kills takes it longer to tell than all the rest, so idle polls read it less often. */
const KILLS_IDLE_POLLS = 4;
/**
 * A worker with a limit is looked at this often even if it does not seem to have run: it may start a child by vfork(2)
 * without a page fault, and in less CPU time than the kernel shows.
 */
const LOOK_ANYWAY_MS = 5_000;
/** From this share of the limit on, shared pages matter. */
const NEAR = 0.8;

export interface Watched {
  /** At the last poll; 0 before the first one. */
  bytes: number;
  /** The measured peak, in bytes; undefined before the first poll. */
  peakBytes: number | undefined;
  /** It was ended for its memory. */
  isOverLimit: boolean;
}

interface Entry extends Watched {
  pid: number;
  limitBytes: number | undefined;
  onOver: (bytes: number) => void;
  /** CPU time of the worker and its children at the last poll, in the kernel's unit. */
  cpuTicks: number;
  activity: ProcessActivity;
  /** At the last poll that looked for them. */
  hasChildren: boolean;
  lookedMs: number;
}

export class MemoryWatch {
  private readonly entries = new Set<Entry>();
  private end = () => {};
  /** 0 while there is nobody to watch. */
  private pollMs = 0;
  private idlePolls = 0;
  /** The kernel's count of processes that it killed for memory, at the last two polls that read it. */
  private kernelKills: number[] = [];

  /** `onOver` is called once, with the bytes that are used. */
  add(pid: number, limitBytes: number | undefined, onOver: (bytes: number) => void): Watched {
    const entry: Entry = {
      ...{
        pid,
        limitBytes,
        onOver,
        cpuTicks: 0,
        activity: new ProcessActivity(pid),
        hasChildren: false,
        lookedMs: 0,
      },
      ...{ bytes: 0, peakBytes: undefined, isOverLimit: false },
    };
    this.entries.add(entry);
    this.pollEvery(POLL_MS);
    if (this.kernelKills.length === 0) this.kernelKills = [kernelKills()];
    return entry;
  }

  remove(watched: Watched): void {
    const entry = watched as Entry;
    if (this.entries.delete(entry)) entry.activity.close();
    if (this.entries.size > 0) return;
    this.pollEvery(0);
    this.kernelKills = [];
  }

  private pollEvery(ms: number): void {
    if (this.pollMs === ms) return;
    this.end();
    this.pollMs = ms;
    this.end = ms === 0 ? () => {} : every(ms, "the memory of workers", () => this.poll());
  }

  private poll(): void {
    const isAnyBusy = this.look();
    this.idlePolls = isAnyBusy ? 0 : this.idlePolls + 1;
    if (this.idlePolls % KILLS_IDLE_POLLS === 0)
      this.kernelKills = [...this.kernelKills.slice(-1), kernelKills()];
    if (this.entries.size > 0) this.pollEvery(isAnyBusy ? POLL_MS : this.idlePollMs);
  }

  private get idlePollMs(): number {
    const isAnyLimited = [...this.entries].some(({ limitBytes }) => limitBytes !== undefined);
    return isAnyLimited ? IDLE_POLL_MS : UNLIMITED_IDLE_POLL_MS;
  }

  /** Whether the kernel has killed a process for memory since the count before last: in the last 32 seconds or less. */
  hasKernelKilled(): boolean {
    return kernelKills() > (this.kernelKills[0] ?? Number.POSITIVE_INFINITY);
  }

  /** Returns true if any of the workers is busy. */
  private look(): boolean {
    let isAnyBusy = false;
    const nowMs = performance.now();
    for (const entry of this.entries) {
      if (!mayHaveRun(entry, nowMs)) continue;
      entry.lookedMs = nowMs;
      const tree = processTree(entry.pid);
      entry.hasChildren = tree.length > 1;
      const cpuTicks = sum(tree, ticksOf);
      if (cpuTicks === entry.cpuTicks && entry.peakBytes !== undefined) continue;
      isAnyBusy = true;
      entry.cpuTicks = cpuTicks;
      let bytes = sum(tree, residentBytes);
      const { limitBytes } = entry;
      if (limitBytes !== undefined && bytes > NEAR * limitBytes && tree.length > 1)
        bytes = sum(tree, proportionalBytes);
      entry.bytes = bytes;
      entry.peakBytes = Math.max(entry.peakBytes ?? 0, bytes);
      if (limitBytes === undefined || bytes <= limitBytes || entry.isOverLimit) continue;
      entry.isOverLimit = true;
      contain("a worker over its memory", () => entry.onOver(bytes));
    }
    return isAnyBusy;
  }
}

function mayHaveRun(
  { activity, hasChildren, peakBytes, limitBytes, lookedMs }: Entry,
  nowMs: number,
): boolean {
  return (
    activity.hasRun() ||
    hasChildren ||
    peakBytes === undefined ||
    (limitBytes !== undefined && nowMs - lookedMs >= LOOK_ANYWAY_MS)
  );
}

/** A process and its descendants, as long as they are still its children. */
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

function ticksOf(pid: number): number {
  const stat = textOf(`/proc/${pid}/stat`);
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
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

/** Processes that the kernel has killed for memory since the boot, in any memory group. */
function kernelKills(): number {
  return Number(/^oom_kill (\d+)$/m.exec(textOf("/proc/vmstat"))?.[1] ?? 0);
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    // The process is gone, or this is not Linux.
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
