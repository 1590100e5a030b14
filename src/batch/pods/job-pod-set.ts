/**
 * The pods of one job, as its workers see them: compute that they ask for, wait for, and give back. A reservation is a
 * pod. Its workers follow each other in it, because the launcher starts the next one.
 */
import { contain } from "../../base/boundary.ts";
import { JOB_SHRINKS_AFTER_MS, UNPREPARED_MAX_MS } from "../../contracts/limits/kubernetes/pods.ts";
import type { Ask, Reservation } from "../../engine/reservations.ts";
import type { Claimant } from "../../engine/scheduler/claims.ts";
import type { Compute } from "../../engine/scheduler/compute.ts";
import type { JobsAbove } from "../../engine/scheduler/jobs-above.ts";
import type { LauncherFacts } from "../../kubernetes/pods/launcher.ts";
import type { JobCompute } from "../workers/job-compute.ts";
import type { JobPod } from "./job-pod.ts";
import { whyPodsWait } from "./why-pods-wait.ts";

interface PodAsk extends Ask {
  need: Compute;
  onReserved: (reservation: Reservation) => void;
}

/** Jobs of a higher priority hold this one back (./priority-that-waits.ts). */
const NOBODY_ABOVE: JobsAbove = { count: 0, waiting: 0, apis: [] };

export class JobPodSet implements JobCompute {
  readonly jobId: string;
  readonly pods = new Map<string, JobPod>();
  /** Why its objects could not be applied the last time. */
  refused: string | undefined;
  /** Undefined until the cluster has its Job. */
  jobUid: string | undefined;
  /** The Job's pods, as it was written or seen last. */
  parallelism: number | undefined;
  /** There may be objects of it in the cluster. */
  hasObjects = false;
  isSuspended = false;
  /** One of its pods was prepared, perhaps for a former controller. */
  hasPrepared = false;
  queue: string | undefined;
  /** The job's. */
  priority = 0;
  /** Pods of a job of a higher priority have no place, so that it asks for no further pod. */
  isHeldBack = false;
  /** Since when its workers need fewer pods than it has (monotonic milliseconds); undefined: they do not. */
  fewerSinceMs: number | undefined;
  /** Since when no worker of the job needs a pod (monotonic milliseconds). */
  idleSinceMs = performance.now();
  /** Since when it has asked for pods without having any (monotonic milliseconds). */
  private emptySinceMs = performance.now();
  readonly waitingCount = 0;
  private readonly asks = new Set<PodAsk>();
  private readonly held = new Map<Reservation, JobPod>();
  private readonly changed: (set: JobPodSet) => void;

  constructor(jobId: string, changed: (set: JobPodSet) => void) {
    this.jobId = jobId;
    this.changed = changed;
  }

  /** How many pods its workers need. */
  get wanted(): number {
    return this.asks.size + this.held.size;
  }

  /** The count that its Job should have now. It shrinks late, because the cluster chooses which pods go. */
  parallelismAt(nowMs: number): number {
    const { wanted, parallelism = 0 } = this;
    const hasFewer = wanted < parallelism && this.queue === undefined;
    this.fewerSinceMs = hasFewer ? (this.fewerSinceMs ?? nowMs) : undefined;
    // A queue would take the pods of a Job back whose size changes.
    if (this.queue !== undefined) return parallelism;
    // The cluster takes pods that are on no node first.
    if (this.isHeldBack) return Math.min(wanted, this.placed);
    return hasFewer && nowMs - this.fewerSinceMs! < JOB_SHRINKS_AFTER_MS ? parallelism : wanted;
  }

  get preparingCount(): number {
    return [...this.pods.values()].filter((pod) => pod.isPreparing).length;
  }

  get askingSinceMs(): number | undefined {
    const [longest] = this.asks;
    return longest?.sinceMs;
  }

  get hasNoPlace(): boolean {
    return this.waitingPods.some(({ state }) => state.trouble?.reason === "Unschedulable");
  }

  /** How many of its pods are on a node. */
  private get placed(): number {
    return [...this.pods.values()].filter((pod) => pod.over === undefined && pod.state.phase !== "pending")
      .length;
  }

  /** The pods that no worker uses yet. */
  private get waitingPods(): JobPod[] {
    return [...this.pods.values()].filter((pod) => pod.reservation === undefined && pod.over === undefined);
  }

  get isWaiting(): boolean {
    return this.asks.size > 0;
  }

  ask(need: Compute, onReserved: (reservation: Reservation) => void, by?: Pick<Claimant, "priority">): Ask {
    const ask = { need, onReserved, sinceMs: performance.now() };
    this.priority = by?.priority ?? 0;
    if (this.wanted === 0) this.emptySinceMs = performance.now();
    this.asks.add(ask);
    this.changed(this);
    // The caller is not called back before this returns.
    queueMicrotask(() => this.grant());
    return ask;
  }

  cancel(ask: Ask): boolean {
    const wasWaiting = this.asks.delete(ask as PodAsk);
    this.hasFewer();
    return wasWaiting;
  }

  giveBack(reservation: Reservation): void {
    const pod = this.held.get(reservation);
    if (pod === undefined) return;
    this.held.delete(reservation);
    pod.reservation = undefined;
    if (this.held.size === 0) this.emptySinceMs = performance.now();
    this.hasFewer();
    this.grant();
  }

  mayKeep(reservation: Reservation): boolean {
    return this.held.get(reservation)?.over === undefined;
  }

  /** Whom the cluster prefers, it gives a place by taking a pod away. */
  mayYield(): void {}

  capacity(): number {
    return Number.POSITIVE_INFINITY;
  }

  delayOf(): undefined {
    return undefined;
  }

  jobsAbove(): JobsAbove {
    return NOBODY_ABOVE;
  }

  describe(): string {
    const { refused, isSuspended, isHeldBack, queue, waitingPods: pods } = this;
    return whyPodsWait({ refused, hasJob: this.jobUid !== undefined, isSuspended, isHeldBack, queue, pods });
  }

  podOf(reservation: Reservation): JobPod | undefined {
    return this.held.get(reservation);
  }

  /** The cluster shows this pod so. */
  seen(pod: JobPod): void {
    this.hasPrepared ||= pod.state.phase === "ready";
  }

  /** The launcher of a pod says this now. */
  answered(pod: JobPod, facts: LauncherFacts): void {
    pod.answered(facts);
    this.hasPrepared ||= facts.pid !== null || facts.starts > 0;
    this.grant();
  }

  /** Gives pods to those that have waited longest. */
  grant(nowMs = performance.now()): void {
    for (const ask of [...this.asks]) {
      const pod = this.podToGive(nowMs);
      if (pod === undefined) return;
      const { cpuMillis, memoryBytes } = ask.need;
      const reservation = { cpuMillis, memoryBytes, gpus: [] };
      this.asks.delete(ask);
      this.held.set(reservation, pod);
      pod.reservation = reservation;
      pod.isReported = pod.unprepared !== undefined;
      contain(`a pod for job ${this.jobId}`, () => ask.onReserved(reservation));
    }
  }

  /** Without any worker, also one in which none can run: its start fails, which ends the job as on one machine. */
  private podToGive(nowMs: number): JobPod | undefined {
    const pods = [...this.pods.values()].filter((pod) => this.isOfJob(pod));
    const free = pods.find((pod) => pod.isFree);
    if (free !== undefined || this.held.size > 0) return free;
    const isFirst = !this.hasPrepared && !pods.some((pod) => pod.isUnknown);
    const isLong = nowMs - this.emptySinceMs >= UNPREPARED_MAX_MS;
    return pods.find((pod) => pod.isHopeless({ isFirst, isLong }));
  }

  /** Not of one of the same name that was removed. */
  private isOfJob({ ownerUid }: JobPod): boolean {
    return this.jobUid !== undefined && ownerUid === this.jobUid;
  }

  private hasFewer(): void {
    if (this.wanted === 0) {
      this.idleSinceMs = performance.now();
      for (const pod of this.pods.values()) pod.isReported = false;
    }
    this.changed(this);
  }
}
