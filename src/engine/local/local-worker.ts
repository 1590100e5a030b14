/**
 * A running worker of the local engine, started by this controller or an earlier one. When it ends, nothing of it is
 * left: its forks are killed, and its socket and its note are removed.
 */
import { closeSync, rmSync } from "node:fs";
import { contain } from "../../base/boundary.ts";
import { openInDirectory } from "../../base/disk-full.ts";
import { signalGroup } from "../../base/process-identity.ts";
import { type DeliveryNote, readDeliveryNote } from "../../protocol/delivery-note.ts";
import type { RunningWorker, WorkerExit, WorkerIdentity, WorkerMemory } from "../engine.ts";
import type { MemoryGroup, MemoryGroups } from "./memory-groups.ts";
import type { MemoryWatch, Watched } from "./memory-watch.ts";
import { lastLines } from "./worker-log.ts";

/** Callers that wait for the exit read the note first, so it is removed a little later. */
const REMOVE_FILES_MS = 5_000;

export interface Watching {
  memory: MemoryWatch;
  groups: MemoryGroups;
  /** If the worker has a group, the kernel enforces its limit, and the watch only measures. */
  group: MemoryGroup | undefined;
  /** Undefined if the log file is unknown. */
  logFile: string | undefined;
  memoryLimitBytes: number | undefined;
  /** Keeps the log within its limits, until the returned function is called. */
  watchLog: (file: string) => () => void;
}

export class LocalWorker implements RunningWorker {
  readonly identity: WorkerIdentity;
  readonly address: { path: string };
  readonly exited: Promise<WorkerExit>;
  private readonly watching: Watching;
  private readonly watched: Watched;
  private logFile: string | undefined;
  private unwatchLog: () => void;
  private hasExited = false;

  constructor(identity: WorkerIdentity, exited: Promise<WorkerExit>, watching: Watching) {
    this.identity = identity;
    this.address = { path: identity.socket };
    this.watching = watching;
    const { memory, group, logFile, memoryLimitBytes } = watching;
    this.logFile = logFile;
    this.unwatchLog = logFile === undefined ? () => {} : watching.watchLog(logFile);
    const watchedLimit = group === undefined ? memoryLimitBytes : undefined;
    this.watched = memory.add(identity.pid, watchedLimit, () => this.kill());
    this.exited = exited.then((exit) => this.end(exit));
  }

  get memory(): WorkerMemory {
    const { bytes, peakBytes = bytes } = this.watched;
    return { bytes, peakBytes, limitBytes: this.watching.memoryLimitBytes };
  }

  async stop(graceMs: number): Promise<void> {
    if (this.hasExited) return;
    signalGroup(this.identity.pid, "SIGTERM");
    const timer = setTimeout(() => this.kill(), graceMs);
    await this.exited;
    clearTimeout(timer);
  }

  kill(): void {
    if (this.hasExited) return;
    signalGroup(this.identity.pid, "SIGKILL");
    this.watching.group?.kill();
  }

  logTo(logFile: string): void {
    // It must exist to be watched.
    closeSync(openInDirectory(logFile, "a"));
    contain("the log of a worker", this.unwatchLog);
    this.unwatchLog = this.watching.watchLog(logFile);
    this.logFile = logFile;
  }

  lastNote(): DeliveryNote | undefined {
    return readDeliveryNote(this.identity.note);
  }

  private end(exit: WorkerExit): WorkerExit {
    const { identity, watching, watched, logFile } = this;
    const { memory, groups, group } = watching;
    this.hasExited = true;
    const outOfMemory = outOfMemoryBy(exit, watching, watched);
    memory.remove(watched);
    // The exit is reported even if the log cannot be handled.
    contain("the log of a worker", this.unwatchLog);
    // End its forks too. The process group contains nothing else.
    signalGroup(identity.pid, "SIGKILL");
    if (group !== undefined) contain("the group of a worker", () => groups.remove(group));
    setTimeout(() => contain("files of a worker", () => removeFiles(identity)), REMOVE_FILES_MS).unref();
    return {
      ...exit,
      ...(outOfMemory === undefined ? {} : { outOfMemory }),
      ...factsOf(logFile, watching, watched),
    };
  }
}

export function removeFiles(identity: WorkerIdentity): void {
  rmSync(identity.socket, { force: true });
  rmSync(identity.note, { force: true });
}

/** What was seen of a worker that has ended. */
function factsOf(
  logFile: string | undefined,
  { memoryLimitBytes }: Watching,
  { peakBytes }: Watched,
): WorkerExit {
  return {
    ...(peakBytes === undefined ? {} : { peakMemoryBytes: peakBytes }),
    ...(memoryLimitBytes === undefined ? {} : { memoryLimitBytes }),
    ...(logFile === undefined ? {} : { lastLines: lastLines(logFile) }),
  };
}

/** Who killed the worker for its memory: Quern, or the kernel. */
function outOfMemoryBy(
  exit: WorkerExit,
  { memory, group }: Watching,
  watched: Watched,
): WorkerExit["outOfMemory"] {
  if (watched.isOverLimit) return "limit";
  const isKilled = exit.signal === "SIGKILL";
  // The exit status of an adopted worker is unknown. Only its group knows how it ended.
  const isStranger = exit.signal === undefined && exit.code === undefined;
  if (group !== undefined) return isKilled || isStranger ? group.outOfMemory : undefined;
  return isKilled && memory.hasKernelKilled() ? "kernel" : undefined;
}
