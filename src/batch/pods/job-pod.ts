/** A pod of a job's Job, as the cluster shows it, and who uses its worker. */
import { UNPREPARED_MAX_MS } from "../../contracts/limits/kubernetes/pods.ts";
import type { Reservation } from "../../engine/reservations.ts";
import type { Pod } from "../../kubernetes/pod.ts";
import { type PodState, podState } from "../../kubernetes/pod-state.ts";
import type { LauncherFacts, LauncherFailure } from "../../kubernetes/pods/launcher.ts";

export class JobPod {
  readonly name: string;
  readonly uid: string;
  readonly jobId: string;
  readonly api: string;
  /** The worker's compute, while a worker of the job uses it. */
  reservation: Reservation | undefined;
  /** Its project and its Python environment are there. */
  isPrepared = false;
  /** What its launcher says meanwhile. */
  says: string | undefined;
  /** Why it cannot run a worker yet, as its launcher says. */
  unprepared: LauncherFailure | undefined;
  /** A worker was given this pod although it is not prepared. The job is about to end. */
  isReported = false;
  /** What a former controller's worker had in hand there is known, and it has ended. */
  isSettled: boolean;
  /** How many workers it has had for this controller. */
  workers = 0;
  private pod: Pod;
  /** A former controller may have had workers in it. */
  private readonly isFormer: boolean;
  private hasAnswered = false;
  private isGone = false;
  private onOver: () => void = () => {};

  constructor(pod: Pod, { jobId, api, isSettled }: { jobId: string; api: string; isSettled: boolean }) {
    this.name = pod.metadata.name;
    this.uid = pod.metadata.uid ?? "";
    this.jobId = jobId;
    this.api = api;
    this.isSettled = isSettled;
    this.isFormer = !isSettled;
    this.pod = pod;
  }

  /** Its launcher says this now. */
  answered({ state, reason, failure, pid }: LauncherFacts): void {
    this.hasAnswered = true;
    this.isPrepared = pid !== null;
    this.unprepared = failure ?? undefined;
    const says = this.unprepared?.message ?? `${state}${reason === null ? "" : `: ${reason}`}`;
    this.says = this.isPrepared ? undefined : says;
  }

  /** The pod is so now; undefined: it is gone. */
  changed(pod: Pod | undefined): void {
    if (pod === undefined) this.isGone = true;
    else this.pod = pod;
    if (this.over !== undefined) this.onOver();
  }

  /** Calls back, perhaps more than once, when no worker can run here any more. One listener at a time. */
  whenOver(listener: () => void): void {
    this.onOver = listener;
  }

  get state(): PodState {
    return podState(this.pod);
  }

  /** Undefined before it has one. */
  get host(): string | undefined {
    return this.pod.status?.podIP;
  }

  /** The Job that made it. */
  get ownerUid(): string | undefined {
    return this.pod.metadata.ownerReferences?.[0]?.uid;
  }

  get restarts(): number {
    return this.pod.status?.containerStatuses?.[0]?.restartCount ?? 0;
  }

  /** Why the container before the present one ended, in the kubelet's word. */
  get lastEnd(): string | undefined {
    return this.pod.status?.containerStatuses?.[0]?.lastState?.terminated?.reason;
  }

  /** How it was taken away, as a clause; undefined while a worker can run in it. */
  get over(): string | undefined {
    return this.isGone ? "lost its pod: it is gone" : howOver(this.state);
  }

  /** A worker that nobody has can run in it. */
  get isFree(): boolean {
    return this.isPrepared && this.isAvailable;
  }

  /** It runs, and makes what a worker needs. */
  get isPreparing(): boolean {
    return (
      this.says !== undefined && this.unprepared === undefined && !this.isPrepared && this.over === undefined
    );
  }

  /** A former controller may have had a worker in it: its launcher has not answered since. */
  get isUnknown(): boolean {
    return this.isFormer && !this.hasAnswered && this.over === undefined && this.host !== undefined;
  }

  /**
   * No worker will run in it. `isFirst`: nothing shows yet that one can in another pod of the job. `isLong`: the job has
   * had none for as long as what may pass can last.
   */
  isHopeless({ isFirst, isLong }: { isFirst: boolean; isLong: boolean }): boolean {
    const { unprepared } = this;
    if (unprepared === undefined || this.isPrepared || this.isReported || !this.isAvailable) return false;
    return (isFirst && unprepared.is_final) || (isLong && unprepared.for_s * 1_000 >= UNPREPARED_MAX_MS);
  }

  private get isAvailable(): boolean {
    return this.isSettled && this.reservation === undefined && this.over === undefined;
  }
}

/** Pure. */
export function howOver({ phase, trouble }: PodState): string | undefined {
  const isOver = phase === "leaving" || phase === "lost" || phase === "failed" || phase === "succeeded";
  if (!isOver) return undefined;
  if (trouble !== undefined) return `lost its pod (${trouble.reason}: ${trouble.detail})`;
  return phase === "leaving" ? "lost its pod: somebody has deleted it" : "lost its pod: it has ended";
}
