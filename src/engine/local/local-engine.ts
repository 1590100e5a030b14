/**
 * The local engine. Each worker is a process with its own session, so that it outlives the server and can be killed
 * with all its forks.
 */
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { contain } from "../../base/boundary.ts";
import { makeDirectories } from "../../base/disk-full.ts";
import { newToken } from "../../base/ids.ts";
import { OneEachTurn } from "../../base/loop/turns.ts";
import { processStartTime, signalGroup } from "../../base/process-identity.ts";
import type { MemoryLimits } from "../../contracts/http/answers.ts";
import { TEMPLATE_SILENT_MAX_MS } from "../../contracts/limits/processes.ts";
import { NOTE_BYTES } from "../../protocol/delivery-note.ts";
import type { Engine, RunningWorker, WorkerIdentity, WorkerMemory, WorkerSpec } from "../engine.ts";
import { lowerPriority } from "./background-priority.ts";
import { removeLeftFiles } from "./left-files.ts";
import { LocalWorker, removeFiles, type Watching } from "./local-worker.ts";
import { MemoryGroups } from "./memory-groups.ts";
import { MemoryWatch } from "./memory-watch.ts";
import { StoppedWorkers } from "./stopped-workers.ts";
import { standardOutput } from "./worker-log.ts";
import { isOurWorker, spareTheServer } from "./worker-ownership.ts";
import {
  commandOf,
  exitOfStranger,
  launchOf,
  type ProcessOptions,
  type StartedProcess,
  startProcess,
} from "./worker-process.ts";
import { WorkerTemplates } from "./worker-templates.ts";

export interface LocalEngineOptions extends ProcessOptions {
  /** With the instance's id, it identifies the workers of this data directory. */
  dataDir: string;
  /** Other servers may have the same instance (`--state`). */
  isShared?: boolean;
  /** Keeps the log of a running worker within its limits, until the returned function is called. */
  watchLog: (file: string) => () => void;
  /** The control group in which each worker gets a child group (delegated-cgroup.ts). Without it, memory is watched. */
  delegatedCgroup: string | undefined;
}

export class LocalEngine implements Engine {
  private readonly options: LocalEngineOptions;
  private readonly memory = new MemoryWatch();
  private readonly groups: MemoryGroups;
  private readonly templates: WorkerTemplates;
  private readonly stopped = new StoppedWorkers();
  private readonly starts = new OneEachTurn();
  private readonly running = new Set<LocalWorker>();

  constructor(options: LocalEngineOptions) {
    this.options = options;
    this.groups = new MemoryGroups(options.delegatedCgroup);
    const { runtimeDir, pythonRuntime } = options;
    const silentMaxMs = TEMPLATE_SILENT_MAX_MS;
    this.templates = new WorkerTemplates({ runtimeDir, pythonRuntime, silentMaxMs }, this.stopped);
  }

  get memoryLimits(): MemoryLimits {
    if (this.groups.areThere) return "kernel";
    return process.platform === "linux" ? "watched" : "none";
  }

  async start(spec: WorkerSpec): Promise<RunningWorker> {
    const { runtimeDir, instanceId } = this.options;
    const socket = join(runtimeDir, `${spec.worker_id}.sock`);
    const note = spec.noteFile ?? join(runtimeDir, `${spec.worker_id}.note`);
    const token = newToken();
    for (const directory of [runtimeDir, dirname(spec.logFile), dirname(note)]) makeDirectories(directory);
    // A full disk is an error here. When the worker first writes to the mapped file, it would kill the worker.
    writeFileSync(note, Buffer.alloc(NOTE_BYTES), { mode: 0o600 });
    // Starting a process takes some 5 ms of the event loop, and many jobs may start at once.
    await this.starts.turn();
    const { pid, exited } = await this.startProcess(spec, { socket, note, token });
    spareTheServer(pid);
    if (spec.isBackground) lowerPriority(pid);
    const { worker_id, logFile, memoryLimitBytes } = spec;
    const process_start = processStartTime(pid) ?? "gone";
    const identity = { worker_id, pid, process_start, socket, token, note, instance_id: instanceId };
    const group = this.groups.enclose(worker_id, pid, memoryLimitBytes);
    const watching = this.watching({ group, logFile, memoryLimitBytes });
    return this.known(new LocalWorker(identity, exited, watching));
  }

  private async startProcess(
    spec: WorkerSpec,
    place: Pick<WorkerIdentity, "socket" | "note" | "token">,
  ): Promise<StartedProcess> {
    const [command, launch] = [commandOf(spec, this.options), launchOf(spec, place)];
    const forked = spec.program === undefined ? await this.templates.start(command, launch) : undefined;
    return forked ?? (await startProcess(spec, command, launch, this.options));
  }

  adopt(identity: WorkerIdentity, memoryLimitBytes: number | undefined): RunningWorker | undefined {
    if (!isOurWorker(identity, this.options)) {
      // Files of another instance are in another directory, and in use.
      if (dirname(identity.socket) === this.options.runtimeDir) removeFiles(identity);
      return undefined;
    }
    const group = this.groups.find(identity.worker_id, identity.pid);
    const logFile = standardOutput(identity);
    const watching = this.watching({ group, logFile, memoryLimitBytes });
    return this.known(new LocalWorker(identity, exitOfStranger(identity), watching));
  }

  end(identity: WorkerIdentity): void {
    if (!isOurWorker(identity, this.options)) return;
    signalGroup(identity.pid, "SIGKILL");
    this.groups.clear(identity.worker_id);
  }

  killAll(): void {
    for (const worker of this.running) worker.kill();
  }

  removeRemains(known: readonly WorkerIdentity[]): void {
    removeLeftFiles(this.options.runtimeDir, new Set(known.map(({ worker_id }) => worker_id)));
  }

  memoryInUse(): Map<string, WorkerMemory> {
    const measured = [...this.running].filter(({ memory }) => memory.bytes > 0);
    return new Map(measured.map(({ identity, memory }) => [identity.worker_id, memory]));
  }

  private known(worker: LocalWorker): LocalWorker {
    const { pid, worker_id } = worker.identity;
    this.running.add(worker);
    this.stopped.add(pid, worker_id);
    contain("a worker that has ended", async () => {
      await worker.exited;
      this.running.delete(worker);
      this.stopped.remove(pid);
    });
    return worker;
  }

  async settled(): Promise<void> {
    this.templates.killAll();
    await this.groups.settled();
  }

  private watching(worker: Pick<Watching, "group" | "logFile" | "memoryLimitBytes">): Watching {
    const { memory, groups } = this;
    return { memory, groups, watchLog: this.options.watchLog, ...worker };
  }
}
