/**
 * The local engine. Each worker is a process with its own session, so that it outlives the server and can be killed
 * with all its forks. Its output goes directly to its log file. Its stdin is /dev/null.
 */
import { type ChildProcess, spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  readSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { parseEnv } from "node:util";
import { contain } from "../base/boundary.ts";
import { delay, OneEachTurn } from "../base/clock.ts";
import { makeDirectories } from "../base/disk-full.ts";
import { newToken } from "../base/ids.ts";
import { isSameProcess, processStartTime, signalGroup } from "../base/process-identity.ts";
import type { MemoryLimits } from "../contracts/http/answers.ts";
import { hideOwnKeys } from "../contracts/secrets.ts";
import { NOTE_BYTES } from "../protocol/delivery-note.ts";
import { withApiUrl } from "./api-url.ts";
import { lowerPriority } from "./background-priority.ts";
import type { Engine, RunningWorker, WorkerExit, WorkerIdentity, WorkerSpec } from "./engine.ts";
import { activated } from "./environments/interpreter.ts";
import { type MemoryGroup, MemoryGroups } from "./memory-groups.ts";
import { MemoryWatch, type Watched } from "./memory-watch.ts";
import { INSTANCE_VARIABLE, isOurWorker, spareTheServer } from "./worker-ownership.ts";

const ADOPTED_POLL_MS = 500;
const LAST_BYTES = 4096;
const LAST_LINES = 10;

/** Variables of the server that user code may see (docs/contract/predictor.md#environment-of-user-code). */
const PASSED_ON =
  /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|LD_LIBRARY_PATH|CUDA_\w+|NVIDIA_\w+|(https?|no|all|ftp)_proxy|AWS_\w+|GOOGLE_\w+|AZURE_\w+|CLOUDSDK_\w+)$/i;

export interface LocalEngineOptions {
  /** The directory of sockets and notes. It must be short: a socket path of more than 107 bytes is truncated. */
  runtimeDir: string;
  /** Identifies the workers of this data directory: the instance's id, and the directory. */
  instanceId: string;
  dataDir: string;
  /** The directory that holds the package `quern_runtime`. */
  pythonRuntime: string;
  /** The server's environment, a part of which user code sees. */
  serverEnv: NodeJS.ProcessEnv;
  /** Keeps the log of a running worker within its limits, until the returned function is called. */
  watchLog: (file: string) => () => void;
  /** The control group in which each worker gets a child group (delegated-cgroup.ts). Without it, memory is watched. */
  delegatedCgroup: string | undefined;
}

export class LocalEngine implements Engine {
  private readonly options: LocalEngineOptions;
  private readonly memory = new MemoryWatch();
  private readonly groups: MemoryGroups;

  private readonly starts = new OneEachTurn();

  constructor(options: LocalEngineOptions) {
    this.options = options;
    this.groups = new MemoryGroups(options.delegatedCgroup);
  }

  get memoryLimits(): MemoryLimits {
    if (this.groups.areThere) return "kernel";
    return process.platform === "linux" ? "watched" : "none";
  }

  async start(spec: WorkerSpec): Promise<RunningWorker> {
    const { runtimeDir, pythonRuntime } = this.options;
    makeDirectories(runtimeDir);
    const socket = join(runtimeDir, `${spec.worker_id}.sock`);
    const note = spec.noteFile ?? join(runtimeDir, `${spec.worker_id}.note`);
    const token = newToken();
    // The runtime imports its modules before the project is on the path, so that no user file shadows them.
    const program = spec.program ?? {
      package: "quern_runtime",
      args: ["--listen", `unix:${socket}`, "--note", note],
    };
    // User code sees only one variable of Quern's, QUERN_API_URL. The initial environment stays readable in /proc.
    const boot = `import os, sys; os.environ.pop(${JSON.stringify(INSTANCE_VARIABLE)}, None); sys.path[0] = ${JSON.stringify(pythonRuntime)}; from ${program.package}.__main__ import main; main()`;
    for (const file of [spec.logFile, note]) makeDirectories(dirname(file));
    // A full disk is an error here. When the worker first writes to the mapped file, it would kill the worker.
    writeFileSync(note, Buffer.alloc(NOTE_BYTES), { mode: 0o600 });
    // Starting a process takes some 5 ms of the event loop, and many jobs may start at once.
    await this.starts.turn();
    const log = openSync(spec.logFile, "a", 0o600);
    const child = spawn(spec.interpreter.python, ["-E", "-c", boot, ...program.args], {
      cwd: runtimeDir,
      env: {
        ...withApiUrl(userEnvironment(spec, this.options.serverEnv), spec.apiUrl),
        ...(spec.visibleGpus === undefined ? {} : { CUDA_VISIBLE_DEVICES: spec.visibleGpus.join(",") }),
        QUERN_WORKER_LOG: spec.logFile,
        ...(spec.program === undefined ? { QUERN_WORKER_TOKEN: token } : {}),
        [INSTANCE_VARIABLE]: this.options.instanceId,
      },
      stdio: ["ignore", log, log],
      detached: true,
    });
    closeSync(log);
    await spawned(child, spec.interpreter.python);
    const pid = child.pid!;
    spareTheServer(pid);
    if (spec.isBackground) lowerPriority(pid);
    const identity = {
      worker_id: spec.worker_id,
      pid,
      process_start: processStartTime(pid) ?? "gone",
      socket,
      token,
      note,
      instance_id: this.options.instanceId,
    };
    const { logFile, memoryLimitBytes } = spec;
    const group = this.groups.enclose(spec.worker_id, pid, memoryLimitBytes);
    const { memory, groups } = this;
    const { watchLog } = this.options;
    return new LocalWorker(identity, exitOfChild(child), {
      memory,
      groups,
      group,
      logFile,
      memoryLimitBytes,
      watchLog,
    });
  }

  adopt(identity: WorkerIdentity, memoryLimitBytes: number | undefined): RunningWorker | undefined {
    if (!isOurWorker(identity, this.options)) {
      // Files of another instance are in another directory, and in use.
      if (dirname(identity.socket) === this.options.runtimeDir) removeFiles(identity);
      return undefined;
    }
    const group = this.groups.find(identity.worker_id, identity.pid);
    const { watchLog } = this.options;
    const logFile = standardOutput(identity);
    const { memory, groups } = this;
    const watching = { memory, groups, group, logFile, memoryLimitBytes, watchLog };
    return new LocalWorker(identity, exitOfStranger(identity), watching);
  }

  end(identity: WorkerIdentity): void {
    if (!isOurWorker(identity, this.options)) return;
    signalGroup(identity.pid, "SIGKILL");
    this.groups.clear(identity.worker_id);
  }

  settled(): Promise<void> {
    return this.groups.settled();
  }
}

interface Watching {
  memory: MemoryWatch;
  groups: MemoryGroups;
  /** If the worker has a group, the kernel enforces its limit, and the watch only measures. */
  group: MemoryGroup | undefined;
  /** Undefined if the log file is unknown. */
  logFile: string | undefined;
  memoryLimitBytes: number | undefined;
  watchLog: (file: string) => () => void;
}

class LocalWorker implements RunningWorker {
  readonly identity: WorkerIdentity;
  readonly address: { path: string };
  readonly exited: Promise<WorkerExit>;
  private readonly group: MemoryGroup | undefined;
  private hasExited = false;

  constructor(identity: WorkerIdentity, exited: Promise<WorkerExit>, watching: Watching) {
    this.identity = identity;
    this.address = { path: identity.socket };
    const { memory, group, logFile, memoryLimitBytes } = watching;
    const unwatchLog = logFile === undefined ? () => {} : watching.watchLog(logFile);
    this.group = group;
    const watchedLimit = group === undefined ? memoryLimitBytes : undefined;
    const watched = memory.add(identity.pid, watchedLimit, () => this.kill());
    this.exited = exited.then((exit) => {
      this.hasExited = true;
      const outOfMemory = outOfMemoryBy(exit, watching, watched);
      memory.remove(watched);
      // The exit is reported even if the log cannot be handled.
      contain("the log of a worker", unwatchLog);
      // End its forks too. The process group contains nothing else.
      signalGroup(identity.pid, "SIGKILL");
      if (group !== undefined) contain("the group of a worker", () => watching.groups.remove(group));
      // Callers that wait for the exit read the note first, so it is removed a little later.
      setTimeout(() => contain("files of a worker", () => removeFiles(identity)), 5_000).unref();
      return {
        ...exit,
        ...(outOfMemory === undefined ? {} : { outOfMemory }),
        ...(watched.peakBytes === undefined ? {} : { peakMemoryBytes: watched.peakBytes }),
        ...(memoryLimitBytes === undefined ? {} : { memoryLimitBytes }),
        ...(logFile === undefined ? {} : { lastLines: lastLines(logFile) }),
      };
    });
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
    this.group?.kill();
  }
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

/** The log of a worker that another controller started; undefined if the system does not show it. */
function standardOutput({ worker_id, pid }: WorkerIdentity): string | undefined {
  try {
    const file = readlinkSync(`/proc/${pid}/fd/1`);
    // User code may have redirected it to another file.
    return basename(file) === `${worker_id}.log` && existsSync(file) ? file : undefined;
  } catch {
    return undefined;
  }
}

/** The last lines of a log file, with Quern's keys hidden. */
function lastLines(logFile: string): string[] {
  try {
    const file = openSync(logFile, "r");
    try {
      const { size } = fstatSync(file);
      const buffer = Buffer.alloc(Math.min(size, LAST_BYTES));
      readSync(file, buffer, 0, buffer.length, size - buffer.length);
      return hideOwnKeys(buffer.toString("utf8")).trimEnd().split("\n").slice(-LAST_LINES);
    } finally {
      closeSync(file);
    }
  } catch {
    // The log was rotated away, or never written.
    return [];
  }
}

function exitOfChild(child: ChildProcess): Promise<WorkerExit> {
  return new Promise((resolve) => {
    child.once("exit", (code, signal) =>
      resolve({ ...(code === null ? {} : { code }), ...(signal === null ? {} : { signal }) }),
    );
  });
}

/**
 * Waits for the end of a process that is no child of this one, so there is no wait status. It polls twice a second.
 * Callers notice the end earlier, because the worker's socket closes at once.
 */
async function exitOfStranger(identity: WorkerIdentity): Promise<WorkerExit> {
  while (isSameProcess(identity.pid, identity.process_start)) await delay(ADOPTED_POLL_MS);
  return {};
}

function spawned(child: ChildProcess, python: string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (error) =>
      reject(new Error(`could not start ${python}: ${error.message}`, { cause: error })),
    );
  });
}

function removeFiles(identity: WorkerIdentity): void {
  rmSync(identity.socket, { force: true });
  rmSync(identity.note, { force: true });
}

function userEnvironment(spec: WorkerSpec, serverEnv: NodeJS.ProcessEnv): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(serverEnv)) {
    if (value !== undefined && PASSED_ON.test(name)) env[name] = value;
  }
  const dotEnv = join(spec.project, ".env");
  const fromFile = existsSync(dotEnv)
    ? (parseEnv(readFileSync(dotEnv, "utf8")) as Record<string, string>)
    : {};
  const roots = [
    spec.project,
    ...(spec.python_path === undefined ? [] : [join(spec.project, spec.python_path)]),
  ];
  const own = { PYTHONPATH: roots.join(":"), PYTHONUNBUFFERED: "1" };
  // This wins even over a PATH that the user set: `python` is the interpreter that runs the predictor.
  return activated({ ...env, ...spec.env, ...fromFile, ...own }, spec.interpreter);
}
