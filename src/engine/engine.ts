/**
 * The port to the place where workers run: it starts a worker, reports its exit, and stops it. The caller decides about
 * restarts.
 */
import type { MemoryLimits } from "../contracts/http/answers.ts";
import type { WorkerAddress } from "../protocol/connect-socket.ts";
import type { DeliveryNote } from "../protocol/delivery-note.ts";
import type { Interpreter } from "./environments/interpreter.ts";

export interface WorkerSpec {
  worker_id: string;
  /** The directory with the user's files; the worker's working directory. */
  project: string;
  python_path: string | undefined;
  /** From `predictor.env`. */
  env: Record<string, string>;
  /** The address at which user code reaches the server's APIs, by their names. It is secret. */
  apiUrl?: string;
  /** From `PythonEnvironments.prepare`. */
  interpreter: Interpreter;
  /** The file for stdout and stderr. */
  logFile: string;
  /** `compute.mem`: the worker is killed if it and its children use more. */
  memoryLimitBytes: number | undefined;
  /** The GPUs that the worker may see; undefined if the machine has none. */
  visibleGpus: readonly string[] | undefined;
  /** The file of the delivery note, if it must survive a reboot. By default it is beside the socket. */
  noteFile?: string;
  /** Lowers the worker's priority: nobody waits for each of its results, so requests and the server come first. */
  isBackground: boolean;
  /** A package of Quern's to run, with its arguments. By default a worker that listens is started. */
  program?: { package: string; args: readonly string[] };
}

export interface WorkerExit {
  /** `code` or `signal` as the kernel reports them. Both are absent if the process was not a child of this one. */
  code?: number;
  signal?: string;
  /** It was killed for its memory: over its limit, or by the kernel. */
  outOfMemory?: "limit" | "kernel";
  /** The peak of memory of the worker and its children, in bytes. */
  peakMemoryBytes?: number;
  /** `compute.mem`, if it is set. */
  memoryLimitBytes?: number;
  /** The last lines of its output. */
  lastLines?: string[];
  /** Something else than the worker or Quern ended it, such as an eviction of its pod: how, as a clause. */
  interruption?: string;
}

/** All that another controller needs to adopt this worker. */
export interface WorkerIdentity {
  worker_id: string;
  pid: number;
  process_start: string;
  socket: string;
  token: string;
  note: string;
  /** The instance of the worker's data directory. It is empty if a release without instances started the worker. */
  instance_id: string;
}

export interface RunningWorker {
  readonly identity: WorkerIdentity;
  readonly address: WorkerAddress;
  /** Resolves once the process is gone, at most two seconds later. */
  readonly exited: Promise<WorkerExit>;
  /** Sends SIGTERM to the process group, and SIGKILL after `graceMs`. Resolves once the process is gone. */
  stop(graceMs: number): Promise<void>;
  kill(): void;
  /** The process goes on with another job, and writes its output to this file from now on. */
  logTo(logFile: string): void;
  /** What it had in hand, once it has ended; undefined if that is unknown. */
  lastNote(): DeliveryNote | undefined;
  /** A connection reached the process with this id, in the worker's own container. */
  met?(pid: number): void;
}

/** What a worker and its children use now, and what they may use. */
export interface WorkerMemory {
  bytes: number;
  /** The most that was measured. */
  peakBytes: number;
  limitBytes: number | undefined;
}

export interface Engine {
  start(spec: WorkerSpec): Promise<RunningWorker>;
  readonly memoryLimits: MemoryLimits;
  /** The memory of running workers, by their ids. Those that were not measured yet are missing. */
  memoryInUse(): Map<string, WorkerMemory>;
  /** Adopts a worker that an earlier controller started; undefined if its process is gone. */
  adopt(identity: WorkerIdentity, memoryLimitBytes: number | undefined): RunningWorker | undefined;
  /**
   * Ends a worker that an earlier controller started, with its children. Its exit is not reported, and its note stays.
   */
  end(identity: WorkerIdentity): void;
  /** Kills all workers that run. */
  killAll(): void;
  /** Removes what former controllers have left of workers. `known`: all that may run. Called before any starts. */
  removeRemains(known: readonly WorkerIdentity[]): void;
  /**
   * Resolves once nothing is left of the workers that have ended. A stopping server waits for it, because nobody cleans
   * up later.
   */
  settled(): Promise<void>;
}
