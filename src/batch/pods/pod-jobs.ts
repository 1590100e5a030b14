/**
 * Runs the workers of jobs in pods of a cluster: a Job for each job that has workers. The cluster starts, replaces and
 * ends pods; this applies what it should have, follows the pods, and gives them to workers. A Job goes when no worker of
 * its job needs a pod any more.
 */
import { inBackground } from "../../base/boundary.ts";
import { delay } from "../../base/clock.ts";
import { every } from "../../base/loop/pulse.ts";
import type { Service } from "../../base/service.ts";
import {
  JOB_ADOPTED_MS,
  JOB_LAUNCHER_POLL_MS,
  JOBS_SETTLE_MS,
} from "../../contracts/limits/kubernetes/pods.ts";
import type { Database } from "../../database/database.ts";
import type { RunningWorker } from "../../engine/engine.ts";
import { preparationError } from "../../engine/environments/step-failed.ts";
import type { Reservation } from "../../engine/reservations.ts";
import type { ApiClient } from "../../kubernetes/api-client.ts";
import { ListAndWatch } from "../../kubernetes/list-and-watch.ts";
import { apiOf, JOB_LABEL, JOB_SELECTOR, QUEUE_LABEL, workerHost } from "../../kubernetes/objects/names.ts";
import { HEALTH_PORT, WORKER_PORT } from "../../kubernetes/objects/worker-pods.ts";
import type { Pod } from "../../kubernetes/pod.ts";
import type { WorkerAuthority } from "../../kubernetes/pods/authority.ts";
import { type LauncherAt, type LauncherFailure, launcherFacts } from "../../kubernetes/pods/launcher.ts";
import { type KubernetesObject, pathOf } from "../../kubernetes/resources.ts";
import { unfinishedJobs } from "../records/job-lists.ts";
import { settleFormerPods } from "./former-pods.ts";
import { JobObjects, type JobObjectsDeps } from "./job-objects.ts";
import { JobPod } from "./job-pod.ts";
import { JobPodSet } from "./job-pod-set.ts";
import { JobPodsWriter } from "./job-pods-writer.ts";
import { PodWorker } from "./pod-worker.ts";
import { priorityThatWaits } from "./priority-that-waits.ts";

export interface PodJobsDeps extends Omit<JobObjectsDeps, "writer" | "forget"> {
  db: Database;
  client: ApiClient;
  namespace: string;
  authority: WorkerAuthority;
  /** Writes a line that a worker, or the start of one, has printed to the job's log. */
  workerLog: (jobId: string, worker: string, line: string) => void;
}

interface Job extends KubernetesObject {
  spec?: { parallelism?: number; suspend?: boolean };
}

export class PodJobs implements Service {
  private readonly deps: PodJobsDeps;
  private readonly writer: JobPodsWriter;
  private readonly pods: ListAndWatch<Pod>;
  private readonly jobs: ListAndWatch<Job>;
  private readonly sets = new Map<string, JobPodSet>();
  private readonly objects: JobObjects;
  private isSettled = false;
  /** Jobs of a lower priority are held back. */
  private priorityThatWaits = Number.NEGATIVE_INFINITY;
  private isFailing = false;
  private stopPolling = () => {};

  constructor(deps: PodJobsDeps) {
    this.deps = deps;
    const { client, namespace, authority } = deps;
    this.writer = new JobPodsWriter(client, authority, namespace);
    this.objects = new JobObjects({
      ...deps,
      writer: this.writer,
      forget: (jobId) => this.sets.delete(jobId),
    });
    const watched = {
      ...{ client, labelSelector: JOB_SELECTOR },
      onFailure: (error: Error) => this.tellFailure(error),
    };
    this.pods = new ListAndWatch<Pod>({
      ...watched,
      path: pathOf("Pod", namespace),
      onChange: (name, pod) => this.podChanged(name, pod),
    });
    this.jobs = new ListAndWatch<Job>({
      ...watched,
      path: pathOf("Job", namespace),
      onChange: (name, job) => this.jobChanged(name, job),
    });
  }

  /** Jobs wait for a cluster that is away, and for the end of what former controllers left. */
  async start(): Promise<void> {
    const settled = this.settle();
    inBackground(settled, (err) =>
      this.deps.log.error({ event: "cluster_failed", err }, "the pods of jobs cannot be followed"),
    );
    await Promise.race([settled.catch(() => {}), delay(JOBS_SETTLE_MS)]);
  }

  async stop(): Promise<void> {
    this.stopPolling();
    await Promise.all([this.pods.stop(), this.jobs.stop()]);
  }

  /** The pods of a job. */
  of(jobId: string): JobPodSet {
    const set = this.sets.get(jobId) ?? new JobPodSet(jobId, (changed) => this.changed(changed));
    this.sets.set(jobId, set);
    return set;
  }

  /** A worker in the pod of a reservation. */
  startWorker(jobId: string, reservation: Reservation): RunningWorker {
    const pod = this.sets.get(jobId)?.podOf(reservation);
    const launcher = pod === undefined ? undefined : this.launcherOf(pod);
    if (pod === undefined || launcher === undefined) throw new Error("the pod of the worker is gone");
    if (pod.unprepared !== undefined) throw this.notPrepared(jobId, pod.name, pod.unprepared);
    const { authority, namespace } = this.deps;
    const { memoryBytes } = reservation;
    return new PodWorker(pod, {
      address: {
        ...{ host: launcher.host, port: WORKER_PORT, serverName: workerHost(pod.api, namespace) },
        tls: { ca: authority.ca },
      },
      launcher,
      memoryLimitBytes: memoryBytes === 0 ? undefined : memoryBytes,
      remove: () => this.removePod(pod),
    });
  }

  /** The pod goes with its job, so its output is kept. */
  private notPrepared(jobId: string, pod: string, failure: LauncherFailure): Error {
    for (const line of failure.output) this.deps.workerLog(jobId, pod, line);
    return preparationError(failure);
  }

  private async settle(): Promise<void> {
    const { authority, db } = this.deps;
    await authority.isOpen;
    await Promise.all([this.pods.start(), this.jobs.start()]);
    await Promise.all([this.pods.listed, this.jobs.listed]);
    const former = [...this.sets.values()].flatMap(({ pods }) => [...pods.values()]);
    await settleFormerPods(
      { db, launcherOf: (pod) => this.launcherOf(pod), remove: (pod) => this.removePod(pod) },
      former,
    );
    const unfinished = new Set((await unfinishedJobs(db)).map(({ job_id }) => job_id));
    for (const jobId of await this.writer.found()) {
      const keptMs = unfinished.has(jobId) ? JOB_ADOPTED_MS : 0;
      Object.assign(this.of(jobId), { hasObjects: true, idleSinceMs: performance.now() + keptMs });
    }
    this.isSettled = true;
    this.stopPolling = every(JOB_LAUNCHER_POLL_MS, "the pods of jobs", () => this.look());
    for (const set of this.sets.values()) this.changed(set);
  }

  private launcherOf({ host, api }: JobPod): LauncherAt | undefined {
    return host === undefined
      ? undefined
      : { host, port: HEALTH_PORT, token: this.deps.authority.tokenOf(api) };
  }

  private removePod({ name, uid }: JobPod): void {
    inBackground(this.writer.removePod(name, uid), (err) => this.tellFailure(err));
  }

  private podChanged(name: string, pod: Pod | undefined): void {
    this.isFailing = false;
    if (pod === undefined) {
      for (const { pods } of this.sets.values()) {
        pods.get(name)?.changed(undefined);
        pods.delete(name);
      }
      return;
    }
    const jobId = pod.metadata.labels?.[JOB_LABEL];
    const api = apiOf(pod.metadata.labels);
    if (jobId === undefined || api === undefined) return;
    const set = this.of(jobId);
    const known = set.pods.get(name);
    const isKnown = known !== undefined && known.uid === pod.metadata.uid;
    const shown = isKnown ? known : new JobPod(pod, { jobId, api, isSettled: this.isSettled });
    set.pods.set(name, shown);
    if (isKnown) known.changed(pod);
    set.seen(shown);
  }

  private jobChanged(name: string, job: Job | undefined): void {
    const jobId = job?.metadata.labels?.[JOB_LABEL] ?? this.idOf(name);
    if (jobId === undefined) return;
    const set = this.of(jobId);
    set.jobUid = job?.metadata.uid;
    set.hasObjects ||= job !== undefined;
    set.parallelism = job?.spec?.parallelism;
    set.isSuspended = job?.spec?.suspend === true;
    set.queue = job?.metadata.labels?.[QUEUE_LABEL];
    this.changed(set);
  }

  private idOf(name: string): string | undefined {
    return [...this.sets.keys()].find((jobId) => name.endsWith(jobId));
  }

  /** Asks the launchers of pods that are not prepared yet, and removes Jobs that nobody needs. */
  private look(): void {
    this.priorityThatWaits = priorityThatWaits(this.sets.values(), performance.now());
    for (const set of this.sets.values()) {
      if (set.isHeldBack || this.isHeldBack(set)) this.changed(set);
      if (set.wanted < (set.parallelism ?? 1)) this.changed(set);
      if (!set.isWaiting) continue;
      for (const pod of set.pods.values())
        if (!pod.isPrepared && pod.over === undefined) inBackground(this.ask(set, pod));
      set.grant();
    }
  }

  private async ask(set: JobPodSet, pod: JobPod): Promise<void> {
    const launcher = this.launcherOf(pod);
    const facts = launcher && (await launcherFacts(launcher));
    if (facts !== undefined) set.answered(pod, facts);
  }

  /** Its objects are to be brought to what its workers need. */
  private changed(set: JobPodSet): void {
    if (!this.isSettled) return;
    this.sets.set(set.jobId, set);
    set.isHeldBack = this.isHeldBack(set);
    this.objects.bring(set);
  }

  private isHeldBack({ priority, queue, wanted }: JobPodSet): boolean {
    return wanted > 0 && queue === undefined && priority < this.priorityThatWaits;
  }

  /** Once, until it works again. */
  private tellFailure(err: Error): void {
    if (this.isFailing) return;
    this.isFailing = true;
    this.deps.log.warn({ event: "cluster_failed", err }, "the pods of jobs cannot be followed; tried again");
  }
}
