/** A process that runs inputs, seen from outside: it answers in time, or its current input is a finding. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { root } from "../harness/server.ts";
import { type Answer, KEEP, LOOK, RUN, readMessages, writeMessage } from "./channel.ts";

/**
 * Wall time, on a machine with other work: the limit for inputs that hang. Slow inputs are measured in CPU time in the
 * other process.
 */
const ANSWER_MS = 30_000;
const START_MS = 90_000;
/** A runnable process that had less of a core in that time waits for a busy machine. */
const LEAST_CPU_MS = 5_000;
const HEAP_MIB = 512;
const STDERR_KEPT = 4_000;

export class Executor {
  private readonly child: ChildProcess;
  private readonly socket: Socket;
  private stderr = "";
  private isStarted = false;
  /** In the order in which they were asked; the first is at work. */
  private readonly waiting: ((answer: Answer) => void)[] = [];
  private timer: NodeJS.Timeout | undefined;
  private readonly started: Promise<Answer>;
  /** Why there will be no more answers. */
  private ended: string | undefined;

  private constructor(command: readonly string[]) {
    const [file, ...args] = command;
    this.child = spawn(file!, args, { stdio: ["ignore", "ignore", "pipe", "pipe"], cwd: root });
    this.socket = this.child.stdio[3] as Socket;
    this.child.stderr!.on("data", (text) => {
      this.stderr = (this.stderr + String(text)).slice(-STDERR_KEPT);
    });
    readMessages(this.socket, (message) => this.settle(JSON.parse(message.toString()) as Answer));
    this.socket.on("error", () => {});
    this.child.once("close", (code, signal) =>
      this.end(`the process ended (${signal ?? code}): ${this.stderr}`),
    );
    this.started = this.answer();
  }

  static node(target: string): Executor {
    // Compiled, beside this file.
    const program = join(dirname(fileURLToPath(import.meta.url)), "execute.js");
    return new Executor([process.execPath, `--max-old-space-size=${HEAP_MIB}`, program, target]);
  }

  /** `kind`: `targets`, or `agreements` about what the other side claims. */
  static python(kind: "targets" | "agreements", target: string): Executor {
    const program = join(root, "test", "fuzz", "python", "execute.py");
    return new Executor([process.env.QUERN_PYTHON ?? "python3", program, kind, target]);
  }

  async run(input: Buffer): Promise<Answer> {
    return this.ask(RUN, input);
  }

  async look(keep: boolean): Promise<boolean> {
    return (await this.ask(keep ? KEEP : LOOK, Buffer.alloc(0))).fresh === true;
  }

  /** Ends the process; resolves when it is gone. */
  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const isGone = new Promise((resolve) => this.child.once("close", resolve));
    const timer = setTimeout(() => this.child.kill("SIGKILL"), ANSWER_MS);
    this.socket.end();
    await isGone;
    clearTimeout(timer);
  }

  private async ask(command: number, input: Buffer): Promise<Answer> {
    const problem = (await this.started).finding;
    if (problem !== undefined) return { finding: `the target could not be set up: ${problem}` };
    const answer = this.answer();
    if (this.ended === undefined) writeMessage(this.socket, Buffer.from([command]), input);
    return answer;
  }

  private answer(): Promise<Answer> {
    if (this.ended !== undefined) return Promise.resolve({ finding: this.ended });
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      if (this.waiting.length === 1) this.watch();
    });
  }

  private settle(answer: Answer): void {
    this.isStarted = true;
    this.waiting.shift()?.(answer);
    this.watch();
  }

  /** The current input has a time limit of its own. */
  private watch(): void {
    clearTimeout(this.timer);
    if (this.waiting.length === 0) return;
    const ms = this.isStarted ? ANSWER_MS : START_MS;
    const hadMs = cpuMs(this.child.pid);
    this.timer = setTimeout(() => {
      if (isRunnable(this.child.pid) && cpuMs(this.child.pid) - hadMs < LEAST_CPU_MS) return this.watch();
      this.end(`no answer within ${ms} ms`);
      this.child.kill("SIGKILL");
    }, ms);
  }

  /** The first waiting input was running. */
  private end(why: string): void {
    clearTimeout(this.timer);
    this.ended ??= why;
    for (const settle of this.waiting.splice(0)) settle({ finding: this.ended });
  }
}

/** The CPU time of its main thread; NaN if the kernel does not report it. */
function cpuMs(pid: number | undefined): number {
  return Number(ofKernel(pid, "schedstat").split(" ")[0] || Number.NaN) / 1e6;
}

function isRunnable(pid: number | undefined): boolean {
  return /\) R /.test(ofKernel(pid, "stat"));
}

function ofKernel(pid: number | undefined, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1");
  } catch {
    return "";
  }
}
