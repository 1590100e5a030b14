/**
 * The process of a worker: its command line and environment, its start and its end. Its output goes directly to its log
 * file. Its stdin is /dev/null.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { delay } from "../../base/clock.ts";
import { isSameProcess } from "../../base/process-identity.ts";
import type { WorkerExit, WorkerIdentity, WorkerSpec } from "../engine.ts";
import { userEnvironment } from "./user-environment.ts";
import { INSTANCE_VARIABLE } from "./worker-ownership.ts";

const ADOPTED_POLL_MS = 500;

export interface ProcessOptions {
  /**
   * The directory of sockets and notes, in which processes start. It must be short: a socket path of more than 107 bytes
   * is truncated.
   */
  runtimeDir: string;
  /** The directory that holds the package `quern_runtime`. */
  pythonRuntime: string;
  /** The server's environment, a part of which user code sees. */
  serverEnv: NodeJS.ProcessEnv;
  /** The instance of the data directory, by which its workers are recognised. */
  instanceId: string;
}

/** Resolves once the process runs. It is the leader of its own session. */
export async function startProcess(
  spec: WorkerSpec,
  place: Pick<WorkerIdentity, "socket" | "note" | "token">,
  options: ProcessOptions,
): Promise<ChildProcess> {
  const { python } = spec.interpreter;
  const log = openSync(spec.logFile, "a", 0o600);
  const child = spawn(python, argumentsOf(spec, place, options.pythonRuntime), {
    cwd: options.runtimeDir,
    env: {
      ...userEnvironment(spec, options.serverEnv),
      QUERN_WORKER_LOG: spec.logFile,
      ...(spec.program === undefined ? { QUERN_WORKER_TOKEN: place.token } : {}),
      [INSTANCE_VARIABLE]: options.instanceId,
    },
    stdio: ["ignore", log, log],
    detached: true,
  });
  closeSync(log);
  await spawned(child, python);
  return child;
}

function argumentsOf(
  { program }: WorkerSpec,
  { socket, note }: Pick<WorkerIdentity, "socket" | "note">,
  pythonRuntime: string,
): string[] {
  const { package: name, args } = program ?? {
    package: "quern_runtime",
    args: ["--listen", `unix:${socket}`, "--note", note],
  };
  // The runtime imports its modules before the project is on the path, so that no user file shadows them. User code sees
  // only one variable of Quern's, QUERN_API_URL. The initial environment stays readable in /proc.
  const boot = `import os, sys; os.environ.pop(${JSON.stringify(INSTANCE_VARIABLE)}, None); sys.path[0] = ${JSON.stringify(pythonRuntime)}; from ${name}.__main__ import main; main()`;
  return ["-E", "-c", boot, ...args];
}

function spawned(child: ChildProcess, python: string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (error) =>
      reject(new Error(`could not start ${python}: ${error.message}`, { cause: error })),
    );
  });
}

export function exitOfChild(child: ChildProcess): Promise<WorkerExit> {
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
export async function exitOfStranger(identity: WorkerIdentity): Promise<WorkerExit> {
  while (isSameProcess(identity.pid, identity.process_start)) await delay(ADOPTED_POLL_MS);
  return {};
}
