/**
 * A worker of a job in a pod: one process, which the pod's launcher has started. The launcher tells how it ended, and
 * ends it (docs/pods.md). If the pod itself is taken away, the cluster tells that.
 */
import { inBackground } from "../../base/boundary.ts";
import { delay } from "../../base/clock.ts";
import {
  ENDS_BY_ITSELF_MS,
  LAST_EXIT_POLL_MS,
  LAST_EXIT_WAIT_MS,
} from "../../contracts/limits/kubernetes/pods.ts";
import type { RunningWorker, WorkerExit, WorkerIdentity } from "../../engine/engine.ts";
import {
  type LastExit,
  type LauncherAt,
  type LauncherFacts,
  launcherFacts,
  signalWorker,
} from "../../kubernetes/pods/launcher.ts";
import type { TlsAddress } from "../../protocol/connect-socket.ts";
import type { DeliveryNote } from "../../protocol/delivery-note.ts";
import type { JobPod } from "./job-pod.ts";
import { noteOf, workerExit } from "./pod-exit.ts";

/** Between two questions: a launcher notices a death at once. */
const FIRST_POLL_MS = 10;
/** The cluster shows why a container ended a little after it has begun again. */
const CONTAINER_SHOWN_MS = 5_000;

export interface PodWorkerOptions {
  address: TlsAddress;
  /** The launcher. */
  launcher: LauncherAt;
  memoryLimitBytes: number | undefined;
  /** Removes the pod, which does not answer. */
  remove: () => void;
}

export class PodWorker implements RunningWorker {
  readonly identity: WorkerIdentity;
  readonly address: TlsAddress;
  readonly exited: Promise<WorkerExit>;
  private readonly pod: JobPod;
  private readonly options: PodWorkerOptions;
  private readonly restartsBefore: number;
  private report: (exit: WorkerExit) => void = () => {};
  private hasEnded = false;
  private isAsking = false;
  private isKilledByUs = false;
  private killAtMs = Number.POSITIVE_INFINITY;
  private pid: number | undefined;
  /** The launcher's count of processes when this one ran; undefined until it is known. */
  private start: number | undefined;
  private note: DeliveryNote | undefined;

  constructor(pod: JobPod, options: PodWorkerOptions) {
    this.pod = pod;
    this.options = options;
    this.address = options.address;
    this.restartsBefore = pod.restarts;
    const worker_id = pod.workers++ === 0 ? pod.name : `${pod.name}.${pod.workers}`;
    const { token } = options.launcher;
    this.identity = { worker_id, token, pid: 0, process_start: "", socket: "", note: "", instance_id: "" };
    this.exited = new Promise((resolve) => {
      this.report = resolve;
    });
    pod.whenOver(() => this.podIsOver());
    this.podIsOver();
  }

  met(pid: number): void {
    this.pid = pid;
    inBackground(
      launcherFacts(this.options.launcher).then((facts) => {
        if (facts?.pid === pid) this.start = facts.starts;
      }),
    );
  }

  /** Also called when the connection has ended: then the process has most often ended by itself. */
  kill(): void {
    this.endBy(performance.now() + ENDS_BY_ITSELF_MS);
  }

  async stop(graceMs: number): Promise<void> {
    if (this.hasEnded) return;
    if (this.pid !== undefined) inBackground(signalWorker(this.options.launcher, this.pid, "SIGTERM"));
    this.endBy(performance.now() + graceMs);
    await this.exited;
  }

  /** Its output is in the pod's log. */
  logTo(): void {}

  lastNote(): DeliveryNote | undefined {
    return this.note;
  }

  private podIsOver(): void {
    const { over } = this.pod;
    if (over !== undefined) this.end({ interruption: over });
  }

  private endBy(killAtMs: number): void {
    this.killAtMs = Math.min(this.killAtMs, killAtMs);
    if (this.hasEnded || this.isAsking) return;
    this.isAsking = true;
    inBackground(this.untilEnded());
  }

  private async untilEnded(): Promise<void> {
    const { launcher, remove } = this.options;
    let pauseMs = FIRST_POLL_MS;
    while (!this.hasEnded) {
      // It was never set up, so that it holds nothing: the next worker of this pod may be this process.
      if (this.pid === undefined) return this.end({ interruption: "was not reached" });
      const facts = await launcherFacts(launcher);
      if (facts !== undefined && this.isPast(facts)) return this.endAs(facts.last_exit ?? undefined);
      const lateMs = performance.now() - this.killAtMs;
      if (lateMs >= 0 && (await signalWorker(launcher, this.pid, "SIGKILL"))) this.isKilledByUs = true;
      if (lateMs >= LAST_EXIT_WAIT_MS) {
        remove();
        return this.end({ interruption: "does not answer, and its pod is removed" });
      }
      await delay(pauseMs);
      pauseMs = Math.min(LAST_EXIT_POLL_MS, 2 * pauseMs);
    }
  }

  /** In another container the same number may be another process. */
  private isPast({ pid, starts }: LauncherFacts): boolean {
    return pid !== this.pid || (this.start !== undefined && starts > this.start);
  }

  private async endAs(exit: LastExit | undefined): Promise<void> {
    const { isKilledByUs, options, pod } = this;
    if (exit?.with_container === true) await this.containerIsShown();
    const containerEnd = pod.restarts > this.restartsBefore ? pod.lastEnd : undefined;
    this.note = noteOf(exit?.note);
    this.end(workerExit({ exit, isKilledByUs, containerEnd, memoryLimitBytes: options.memoryLimitBytes }));
  }

  private async containerIsShown(): Promise<void> {
    const endMs = performance.now() + CONTAINER_SHOWN_MS;
    while (this.pod.restarts === this.restartsBefore && performance.now() < endMs)
      await delay(LAST_EXIT_POLL_MS);
  }

  private end(exit: WorkerExit): void {
    this.hasEnded = true;
    this.report(exit);
  }
}
