/**
 * One child of the parent. It is started, restarted whenever it ends, replaced if it does not respond, and stopped.
 * Nothing that happens to it ends the parent: `run` alone reports its end.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { delay } from "../base/clock.ts";
import { every } from "../base/loop/pulse.ts";
import {
  CHILD_RESTART_FIRST_MS,
  CHILD_RESTART_MAX_MS,
  CHILD_SILENT_MAX_MS,
  HEARTBEAT_MS,
} from "../contracts/limits/processes.ts";
import { isStandbyMessage, type StandbyMessage } from "../contracts/messages.ts";
import { packageRoot } from "../contracts/package-root.ts";
import { tellSoon } from "../observe/words.ts";
import { Silence } from "./silence.ts";

/** Exit code of a child that reports a cause of contracts/cannot-start.ts. */
export const EXIT_CANNOT_START = 78;
/** Exit code for any other cause, after which the start is retried. */
export const EXIT_TRY_AGAIN = 75;
/**
 * A stopping gateway sends the first message when it has no more requests from outside. The parent sends the second one
 * once this is true of all gateways.
 */
export const IDLE = "idle";
export const ALL_IDLE = "all idle";
/** What each child says every HEARTBEAT_MS, so that the parent knows that it responds. */
export const ALIVE = "alive";
/** The parent's message to a gateway that will stop soon. It takes requests until then (`--drain-delay`). */
export const STOPS_SOON = "stops soon";
const STOP_MS = 30_000;
/** A child that was ready for this long counts as healthy, and is restarted at once. */
const HEALTHY_MS = 2_000;

export type ChildRole = "gateway" | "controller";

/**
 * The controller creates much short-lived text while it lists and enqueues. With V8's default of 16 MiB for new
 * objects, it would use twice the memory that it needs.
 */
const NODE_OPTIONS: Record<ChildRole, readonly string[]> = {
  gateway: ["--disable-warning=ExperimentalWarning"],
  controller: ["--disable-warning=ExperimentalWarning", "--max-semi-space-size=8"],
};

export interface SupervisedChildOptions {
  role: ChildRole;
  /** The file that Node runs. */
  program: string;
  /** The name in messages, such as "gateway 0". */
  name: string;
  /** Bound sockets that the child inherits. */
  sockets: readonly object[];
  /** The options of the first start, and those of all later starts. */
  firstOptions: string;
  options: string;
  onReady: () => void;
  onIdle: (child: SupervisedChild) => void;
  /** A controller says that another server has the database. */
  onStandby?: (message: StandbyMessage) => void;
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

  /** The process, if it is ready and has responded lately. */
  get serving(): ChildProcess | undefined {
    return this.isReady && this.silence.hasAnswered ? this.child : undefined;
  }

  /** The process, even while it starts or stops. */
  get running(): ChildProcess | undefined {
    return this.child?.pid === undefined || hasEnded(this.child) ? undefined : this.child;
  }

  /** Resolves once the child is stopped. `mayTryAgain` decides whether to retry a start that cannot succeed. */
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
      const message = `the ${this.name} ended (${end}); starting it again${when}`;
      tellSoon("error", { event: "process_ended", process: this.name, end }, message);
      // Keeps the parent alive: if all children are gone at this moment, nothing else does.
      await pause(waitMs, undefined, { signal }).catch(() => {});
    }
  }

  /** Checks whether the child still says that it is alive. Called every HEARTBEAT_MS. */
  tick(nowMs: number): void {
    const { child } = this;
    if (child?.pid === undefined || hasEnded(child) || this.stopping.signal.aborted) return;
    if (this.silence.tick(nowMs, this.isReady)) {
      const message = `the ${this.name} has not responded for ${CHILD_SILENT_MAX_MS / 1000} s; replacing it`;
      tellSoon("error", { event: "process_silent", process: this.name }, message);
      this.isReady = false;
      child.kill("SIGKILL");
    }
  }

  /** Sends SIGTERM, and SIGKILL if that takes too long. The child is not restarted. */
  async stop(): Promise<void> {
    this.stopping.abort();
    const { child } = this;
    if (child?.pid === undefined || hasEnded(child)) return;
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGTERM");
    await Promise.race([exited, delay(STOP_MS).then(() => child.kill("SIGKILL"))]);
  }

  /** Runs the child once. `readyMs` is how long it was ready. */
  private async runOnce(options: string): Promise<{ end: number | string; readyMs: number }> {
    let readySinceMs = Number.POSITIVE_INFINITY;
    const end = await this.start(options, (text) => {
      this.silence.heard();
      if (text === ALIVE) return;
      if (isStandbyMessage(text)) return this.options.onStandby?.(text);
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

  /**
   * Resolves to the exit code, the signal, or the reason why there was no process: the machine may have none left for a
   * while.
   */
  private start(options: string, onMessage: (text: unknown) => void): Promise<number | string> {
    return new Promise((resolve) => {
      const failed = (error: Error) => resolve(`could not be started: ${error.message}`);
      try {
        const child = this.spawn();
        this.child = child;
        this.silence = new Silence(performance.now());
        // This also reports messages that could not be sent to a stopping process, but its exit says the same.
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
    const { role, program, sockets } = this.options;
    return spawn(process.execPath, [...NODE_OPTIONS[role], program, `__${role}`], {
      stdio: ["ignore", "inherit", "inherit", "ipc", ...(sockets as never[])],
      cwd: packageRoot,
      // In another process group: Ctrl-C on a terminal reaches only the parent, which stops its children in order.
      detached: true,
    });
  }
}

/** Checks all children regularly, until the returned function is called. */
export function watchSilence(children: readonly SupervisedChild[], onTick: () => void): () => void {
  const tick = () => {
    for (const child of children) child.tick(performance.now());
    onTick();
  };
  return every(HEARTBEAT_MS, "the heartbeat", tick);
}

export function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}
