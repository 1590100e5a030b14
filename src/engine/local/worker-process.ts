/**
 * The process of a worker: its command line and environment, its start and its end. Its output goes directly to its log
 * file. Its stdin is /dev/null.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { delay } from "../../base/clock.ts";
import { isSameProcess } from "../../base/process-identity.ts";
import type { WorkerExit, WorkerIdentity, WorkerSpec } from "../engine.ts";
import { API_URL_VARIABLE } from "./api-url.ts";
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

/** What all workers of a version have in common. Those of one template start with the same. */
export interface Command {
  python: string;
  env: Readonly<Record<string, string>>;
}

/** What is a worker's own. */
export interface Launch {
  arguments: readonly string[];
  environment: Readonly<Record<string, string>>;
}

/** A process that runs, the leader of its own session. */
export interface StartedProcess {
  pid: number;
  exited: Promise<WorkerExit>;
}

export function commandOf(spec: WorkerSpec, options: ProcessOptions): Command {
  const { [API_URL_VARIABLE]: _, ...env } = userEnvironment(spec, options.serverEnv);
  return { python: spec.interpreter.python, env: { ...env, [INSTANCE_VARIABLE]: options.instanceId } };
}

export function launchOf(
  { logFile, apiUrl, program }: WorkerSpec,
  { socket, note, token }: Pick<WorkerIdentity, "socket" | "note" | "token">,
): Launch {
  const environment = {
    QUERN_WORKER_LOG: logFile,
    ...(apiUrl === undefined ? {} : { [API_URL_VARIABLE]: apiUrl }),
  };
  if (program !== undefined) return { arguments: program.args, environment };
  return {
    arguments: ["--listen", `unix:${socket}`, "--note", note],
    environment: { ...environment, QUERN_WORKER_TOKEN: token },
  };
}

/** Resolves once the process runs. */
export async function startProcess(
  spec: WorkerSpec,
  command: Command,
  launch: Launch,
  options: ProcessOptions,
): Promise<StartedProcess> {
  const log = openSync(spec.logFile, "a", 0o600);
  const boot = bootOf(spec.program?.package ?? "quern_runtime", options.pythonRuntime);
  const child = spawn(command.python, [...boot, ...launch.arguments], {
    cwd: options.runtimeDir,
    env: { ...command.env, ...launch.environment },
    stdio: ["ignore", log, log],
    detached: true,
  });
  closeSync(log);
  await spawned(child, command.python);
  return { pid: child.pid!, exited: exitOfChild(child) };
}

/**
 * The runtime imports its modules before the project is on the path, so that no user file shadows them. User code sees
 * only one variable of Quern's, QUERN_API_URL. The initial environment stays readable in /proc.
 */
export function bootOf(name: string, pythonRuntime: string): string[] {
  const boot = `import os, sys; os.environ.pop(${JSON.stringify(INSTANCE_VARIABLE)}, None); sys.path[0] = ${JSON.stringify(pythonRuntime)}; from ${name}.__main__ import main; main()`;
  return ["-E", "-c", boot];
}

function spawned(child: ChildProcess, python: string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (error) =>
      reject(new Error(`could not start ${python}: ${error.message}`, { cause: error })),
    );
  });
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
export async function exitOfStranger(
  identity: Pick<WorkerIdentity, "pid" | "process_start">,
): Promise<WorkerExit> {
  while (isSameProcess(identity.pid, identity.process_start)) await delay(ADOPTED_POLL_MS);
  return {};
}
