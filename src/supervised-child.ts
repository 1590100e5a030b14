/**
 * One child of the parent: started, started again whenever it ends, replaced when it no longer answers, stopped. Nothing that happens to it
 * ends the parent, which learns of its end from `run` only.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { delay } from "./base/clock.ts";
import {
  CHILD_RESTART_FIRST_MS,
  CHILD_RESTART_MAX_MS,
  CHILD_SILENT_MAX_MS,
  HEARTBEAT_MS,
} from "./contracts/limits.ts";
import { packageRoot } from "./contracts/package-root.ts";
import { say } from "./observe/words.ts";
import { Silence } from "./silence.ts";

/** A child that cannot start for a cause of contracts/cannot-start.ts, and says so itself, ends with this code. */
export const EXIT_CANNOT_START = 78;
/** ... and for any other cause with this one: it is tried again. */
export const EXIT_TRY_AGAIN = 75;
/** A gateway that is stopping has no request from outside any more; and what it is told when that is so of all. */
export const IDLE = "idle";
export const ALL_IDLE = "all idle";
const STOP_MS = 30_000;
/** A child that was ready for this long counts as healthy: its next start is immediate again. */
const HEALTHY_MS = 2_000;

export type ChildRole = "gateway" | "controller";

/**
 * The controller makes much short-lived text while it lists and enqueues: with V8's own 16 MiB of young space its memory
 * stands at twice what it needs.
 */
const NODE_OPTIONS: Record<ChildRole, readonly string[]> = {
  gateway: ["--disable-warning=ExperimentalWarning"],
  // The second one is a client's, about Node versions; ours are said in the README.
  controller: [
    "--disable-warning=ExperimentalWarning",
    "--disable-warning=NodeVersionSupportWarning",
    "--max-semi-space-size=8",
  ],
};

export interface SupervisedChildOptions {
  role: ChildRole;
  /** For people: "gateway 0". */
  name: string;
  /** Bound sockets that it inherits. */
  sockets: readonly object[];
  /** Of the first start, and of those after it. */
  firstOptions: string;
  options: string;
  onReady: () => void;
  onIdle: (child: SupervisedChild) => void;
}

export class SupervisedChild {
  isReady = false;
  isIdle = false;
  readonly name: string;
  private readonly options: SupervisedChildOptions;
  private child: ChildProcess | undefined;
  private silence = new Silence(performance.now());
  private readonly stopping = new AbortController();

  constructor(options: SupervisedChildOptions) {
    this.options = options;
    this.name = options.name;
  }

  /** The process, where it is ready and has answered lately. */
  get serving(): ChildProcess | undefined {
    return this.isReady && this.silence.hasAnswered ? this.child : undefined;
  }

  /** The process, also while it starts or leaves. */
  get running(): ChildProcess | undefined {
    return this.child?.pid === undefined || hasEnded(this.child) ? undefined : this.child;
  }

  /** Resolves when it was stopped. `onCannotStart` decides whether a start that cannot succeed is tried again. */
  async run(mayTryAgain: () => boolean): Promise<void> {
    const { signal } = this.stopping;
    let { firstOptions: options } = this.options;
    for (
      let waitMs = CHILD_RESTART_FIRST_MS;
      !signal.aborted;
      waitMs = Math.min(CHILD_RESTART_MAX_MS, waitMs * 2)
    ) {
      const { end, readyMs } = await this.runOnce(options);
      options = this.options.options;
      if (signal.aborted || (end === EXIT_CANNOT_START && !mayTryAgain())) return;
      if (readyMs > HEALTHY_MS) waitMs = CHILD_RESTART_FIRST_MS;
      const when = waitMs < 1000 ? "" : ` in ${Math.round(waitMs / 1000)} s`;
      say(`quern: the ${this.name} ended (${end}); starting it again${when}`);
      // Keeps us alive: all children may be gone at this moment, and nothing else does.
      await pause(waitMs, undefined, { signal }).catch(() => {});
    }
  }

  /** Asks whether it still answers; called every HEARTBEAT_MS. */
  tick(nowMs: number): void {
    const { child } = this;
    if (child?.pid === undefined || hasEnded(child) || this.stopping.signal.aborted) return;
    if (this.silence.tick(nowMs, this.isReady)) {
      say(`quern: the ${this.name} has not answered for ${CHILD_SILENT_MAX_MS / 1000} s; replacing it`);
      this.isReady = false;
      child.kill("SIGKILL");
    } else child.send("ping", () => {});
  }

  /** SIGTERM, and SIGKILL where that takes too long; it is not started again. */
  async stop(): Promise<void> {
    this.stopping.abort();
    const { child } = this;
    if (child?.pid === undefined || hasEnded(child)) return;
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await Promise.race([exited, delay(STOP_MS).then(() => child.kill("SIGKILL"))]);
  }

  /** `readyMs`: how long it was ready. */
  private async runOnce(options: string): Promise<{ end: number | string; readyMs: number }> {
    let readySinceMs = Number.POSITIVE_INFINITY;
    const end = await this.start(options, (text) => {
      this.silence.heard();
      if (text === "pong") return;
      this.isIdle = text === IDLE;
      if (this.isIdle) return this.options.onIdle(this);
      this.isReady = text === "ready";
      if (!this.isReady) return;
      readySinceMs = performance.now();
      this.options.onReady();
    });
    this.isReady = this.isIdle = false;
    return { end, readyMs: performance.now() - readySinceMs };
  }

  /** Resolves to the exit code, the signal, or why there was no process: the machine may have none to give for a while. */
  private start(options: string, onMessage: (text: unknown) => void): Promise<number | string> {
    return new Promise((resolve) => {
      const failed = (error: Error) => resolve(`could not be started: ${error.message}`);
      try {
        const child = this.spawn();
        this.child = child;
        this.silence = new Silence(performance.now());
        // Also of messages that could not be sent to a process that is leaving: its exit says the same.
        child.on("error", (error) => child.pid === undefined && failed(error));
        if (child.pid === undefined) return;
        child.on("message", onMessage);
        child.once("exit", (code, signal) => resolve(code ?? signal ?? "unknown"));
        child.send(options, () => {});
      } catch (error) {
        failed(error as Error);
      }
    });
  }

  private spawn(): ChildProcess {
    const { role, sockets } = this.options;
    const entry = fileURLToPath(new URL("./bin.js", import.meta.url));
    return spawn(process.execPath, [...NODE_OPTIONS[role], entry, `__${role}`], {
      stdio: ["ignore", "inherit", "inherit", "ipc", ...(sockets as never[])],
      cwd: packageRoot,
      // Not in our process group: Ctrl-C on a terminal reaches us only, and we stop them in order.
      detached: true,
    });
  }
}

/** Asks all of them, until it is stopped. */
export function watchSilence(children: readonly SupervisedChild[], onTick: () => void): NodeJS.Timeout {
  const tick = () => {
    for (const child of children) child.tick(performance.now());
    onTick();
  };
  return setInterval(tick, HEARTBEAT_MS).unref();
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}
