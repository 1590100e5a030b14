/**
 * A Python process that has loaded the runtime, and forks workers of one version (python/quern_runtime/template.py).
 * Its requests and replies are lines of JSON.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { constants } from "node:os";
import { createInterface } from "node:readline";
import { contain } from "../../base/boundary.ts";
import { processStartTime, signalGroup } from "../../base/process-identity.ts";
import type { WorkerExit } from "../engine.ts";
import { spareTheServer } from "./worker-ownership.ts";
import { bootOf, type Command, exitOfStranger, type Launch, type StartedProcess } from "./worker-process.ts";

/** The workers' own arguments take the place of this in the list of processes. */
const ROOM = " ".repeat(512);

export interface TemplateOptions {
  runtimeDir: string;
  pythonRuntime: string;
  /** Without a reply for longer, it is killed. */
  silentMaxMs: number;
}

/** What it says. `ended`, `started`: the id of the request. */
type Reply =
  | { ready: true }
  | { started: string; pid: number }
  | { ended: string; code?: number; signal?: number };

/** A requested worker that has not started yet. `begins` gets undefined if it never will. */
interface Requested {
  begins(process: StartedProcess | undefined): void;
  timer: NodeJS.Timeout;
}

/** A worker that runs. */
interface Forked {
  pid: number;
  process_start: string;
  exits(exit: WorkerExit | Promise<WorkerExit>): void;
}

export class WorkerTemplate {
  /** Resolves once the process is gone. */
  readonly ended: Promise<void>;
  private readonly child: ChildProcess;
  private readonly silentMaxMs: number;
  private readonly requested = new Map<string, Requested>();
  private readonly forked = new Map<string, Forked>();
  private isReady = false;
  private count = 0;

  constructor({ python, env }: Command, { runtimeDir, pythonRuntime, silentMaxMs }: TemplateOptions) {
    this.silentMaxMs = silentMaxMs;
    this.child = spawn(python, [...bootOf("quern_runtime", pythonRuntime), "--template", ROOM], {
      cwd: runtimeDir,
      env,
      stdio: ["pipe", "pipe", "ignore"],
      detached: true,
    });
    const { child } = this;
    this.ended = new Promise((resolve) => {
      // All that it and its workers have written was read then.
      child.once("close", () => resolve(this.close()));
    });
    child.once("error", () => {});
    child.stdin!.on("error", () => {});
    createInterface({ input: child.stdout! }).on("line", (line) =>
      contain("a template of workers", () => this.receive(JSON.parse(line) as Reply)),
    );
    if (child.pid !== undefined) spareTheServer(child.pid);
    child.unref();
    for (const pipe of [child.stdin, child.stdout]) (pipe as Socket).unref();
  }

  get hasWorkers(): boolean {
    return this.requested.size + this.forked.size > 0;
  }

  /** Undefined if it cannot start the worker: the caller starts a process. */
  async fork(launch: Launch): Promise<StartedProcess | undefined> {
    if (!this.isReady) return undefined;
    const id = String(this.count++);
    return new Promise((begins) => {
      const timer = setTimeout(() => this.kill(), this.silentMaxMs);
      this.requested.set(id, { begins, timer });
      this.child.stdin!.write(`${JSON.stringify({ id, ...launch })}\n`);
    });
  }

  /** It ends once it has read this. Its workers go on. */
  end(): void {
    this.isReady = false;
    this.child.stdin!.end();
  }

  /** With it, what it has forked and what has no session of its own yet. */
  private kill(): void {
    this.isReady = false;
    if (this.child.pid !== undefined) signalGroup(this.child.pid, "SIGKILL");
  }

  private receive(reply: Reply): void {
    if ("ready" in reply) this.isReady = true;
    else if ("started" in reply) this.hasStarted(reply.started, reply.pid);
    else this.hasEnded(reply.ended, exitOf(reply));
  }

  private hasStarted(id: string, pid: number): void {
    const process_start = processStartTime(pid) ?? "gone";
    const exited = new Promise<WorkerExit>((exits) => {
      this.forked.set(id, { pid, process_start, exits });
    });
    this.begins(id, { pid, exited });
  }

  private hasEnded(id: string, exit: WorkerExit): void {
    this.forked.get(id)?.exits(exit);
    this.forked.delete(id);
    this.begins(id, undefined);
  }

  private begins(id: string, process: StartedProcess | undefined): void {
    const requested = this.requested.get(id);
    if (requested === undefined) return;
    this.requested.delete(id);
    clearTimeout(requested.timer);
    requested.begins(process);
  }

  /** Nobody tells any more how its workers end. */
  private close(): void {
    this.isReady = false;
    for (const { exits, ...identity } of this.forked.values()) exits(exitOfStranger(identity));
    this.forked.clear();
    for (const id of [...this.requested.keys()]) this.begins(id, undefined);
  }
}

function exitOf({ code, signal }: { code?: number; signal?: number }): WorkerExit {
  if (signal === undefined) return code === undefined ? {} : { code };
  const [name] = Object.entries(constants.signals).find(([, number]) => number === signal) ?? [];
  return { signal: name ?? `signal ${signal}` };
}
