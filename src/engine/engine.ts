/** The port to where workers run: start one, learn of its end, stop it. Restart policy is the caller's. */
import type { MemoryLimits } from "../contracts/answers.ts";
import type { WorkerAddress } from "../protocol/worker-connection.ts";
import type { Interpreter } from "./interpreter.ts";

export interface WorkerSpec {
  worker_id: string;
  /** The directory with the user's files; the worker's working directory. */
  project: string;
  python_path: string | undefined;
  /** From `predictor.env`. */
  env: Record<string, string>;
  /** Where it reaches the server's APIs from inside, by their names; a secret. */
  apiUrl?: string;
  /** From `PythonEnvironments.prepare`. */
  interpreter: Interpreter;
  /** Where stdout and stderr go. */
  logFile: string;
  /** `compute.mem`: the worker is ended when it and its children use more. */
  memoryLimitBytes: number | undefined;
  /** The GPUs that it may see; undefined where the machine has none to give out. */
  visibleGpus: readonly string[] | undefined;
  /** Where it notes what it has in hand, if that is to outlive a reboot; otherwise it is beside its socket. */
  noteFile?: string;
  /** Nobody waits for each of its answers: requests, and the server itself, get the processor first. */
  isBackground: boolean;
  /** What runs: a package of ours, started with these arguments. A worker that listens, where it is left out. */
  program?: { package: string; args: readonly string[] };
}

export interface WorkerExit {
  /** `code` or `signal` as the kernel told; both absent when the process was not our child. */
  code?: number;
  signal?: string;
  /** It was ended for its memory: by us, over its limit, or by the kernel. */
  outOfMemory?: "limit" | "kernel";
  /** The most that it and its children were seen to use, in bytes. */
  peakMemoryBytes?: number;
  /** `compute.mem`, where there is one. */
  memoryLimitBytes?: number;
  /** What it said last, line by line. */
  lastLines?: string[];
}

/** All that another controller needs to find this worker again. */
export interface WorkerIdentity {
  worker_id: string;
  pid: number;
  process_start: string;
  socket: string;
  token: string;
  note: string;
  /** Of the data directory that it works for; empty where a release without instances started it. */
  instance_id: string;
}

export interface RunningWorker {
  readonly identity: WorkerIdentity;
  readonly address: WorkerAddress;
  /** Resolves when the process is gone, within two seconds of it. */
  readonly exited: Promise<WorkerExit>;
  /** SIGTERM to its process group, SIGKILL after `graceMs`. Resolves when it is gone. */
  stop(graceMs: number): Promise<void>;
  kill(): void;
}

export interface Engine {
  start(spec: WorkerSpec): Promise<RunningWorker>;
  readonly memoryLimits: MemoryLimits;
  /** Takes over a worker that an earlier controller started; undefined when its process is gone. */
  adopt(identity: WorkerIdentity, memoryLimitBytes: number | undefined): RunningWorker | undefined;
  /** Ends a worker that an earlier controller started, with all that it started; nobody learns of its exit, and its note stays. */
  end(identity: WorkerIdentity): void;
  /** Resolves when nothing is left of the workers that have ended: asked at a stop, because nobody comes after it. */
  settled(): Promise<void>;
}
