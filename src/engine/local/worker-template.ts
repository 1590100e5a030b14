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

/** What was said before its end is read within this time, even if a process that it started holds a socket. */
const LAST_WORDS_MS = 500;
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
  private readonly requests: Socket;
  private readonly replies: Socket;
  private readonly silentMaxMs: number;
  private readonly requested = new Map<string, Requested>();
  private readonly forked = new Map<string, Forked>();
  private isReady = false;
  private count = 0;

  /** Throws if this process cannot open more files. */
  constructor({ python, env }: Command, { runtimeDir, pythonRuntime, silentMaxMs }: TemplateOptions) {
    this.silentMaxMs = silentMaxMs;
    this.child = spawn(python, [...bootOf("quern_runtime", pythonRuntime), "--template", ROOM], {
      cwd: runtimeDir,
      env,
      // Two sockets: one that is closed while it has unread requests would lose replies that are on the way (unix(7)).
      stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
      detached: true,
    });
    const { child } = this;
    child.once("error", () => {});
    // Node leaves it out, against its type, if it could not make the sockets.
    const [, , , requests, replies] = (child.stdio as ChildProcess["stdio"] | undefined) ?? [];
    if (!requests || !replies) throw new Error("a template of workers has no sockets");
    [this.requests, this.replies] = [requests as Socket, replies as Socket];
    const isOver = new Promise<void>((resolve) => {
      child.once("close", () => resolve());
      child.once("exit", () => setTimeout(resolve, LAST_WORDS_MS));
    });
    this.ended = isOver.then(() => this.close());
    const lines = createInterface({ input: this.replies });
    lines.on("line", (line) =>
      contain("a template of workers", () => this.receive(JSON.parse(line) as Reply)),
    );
    for (const end of [this.requests, this.replies, lines]) end.on("error", () => {});
    if (child.pid !== undefined) spareTheServer(child.pid);
    child.unref();
    for (const socket of [this.requests, this.replies]) socket.unref();
  }

  /** Undefined if it could not be started. */
  get pid(): number | undefined {
    return this.child.pid;
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
      this.requests.write(`${JSON.stringify({ id, ...launch })}\n`);
    });
  }

  /** It ends once it has read this, or at once if it is not ready. Its workers go on. */
  end(): void {
    if (!this.isReady) return this.kill();
    this.isReady = false;
    this.requests.end();
  }

  /** Its workers go on: each has a session of its own. What the environment may have started with it does not. */
  kill(): void {
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
    killGroup(this.child.pid);
    for (const socket of [this.requests, this.replies]) socket.destroy();
    for (const { exits, ...identity } of this.forked.values()) exits(exitOfStranger(identity));
    this.forked.clear();
    for (const id of [...this.requested.keys()]) this.begins(id, undefined);
  }
}

/** What the environment has started with the template, which has ended. */
function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // Nothing is left of it.
  }
}

function exitOf({ code, signal }: { code?: number; signal?: number }): WorkerExit {
  if (signal === undefined) return code === undefined ? {} : { code };
  const [name] = Object.entries(constants.signals).find(([, number]) => number === signal) ?? [];
  return { signal: name ?? `signal ${signal}` };
}
