/**
 * Keeps the real-time APIs of this server as Deployments of a cluster. The cluster starts, replaces and ends pods; this
 * applies what it should have, follows the pods, sets their workers up, and says which serve. Nothing here is needed
 * for a prediction: gateways have the last routes.
 */

import { contain } from "../../base/boundary.ts";
import { delay } from "../../base/clock.ts";
import { every } from "../../base/loop/pulse.ts";
import type { Service } from "../../base/service.ts";
import { CannotStart } from "../../contracts/cannot-start.ts";
import {
  APPLY_PAUSE_FIRST_MS,
  APPLY_PAUSE_MAX_MS,
  CERTIFICATES_POLL_MS,
} from "../../contracts/limits/kubernetes/pods.ts";
import type { ApiVersion } from "../records/api-rows.ts";
import { ReconcileLoop } from "../replicas/reconcile-loop.ts";
import type { ApiReplicas, ReplicasOwner } from "../serving/api-replicas.ts";
import { ApiObjects, type ApiObjectsDeps } from "./api-objects.ts";
import { ClusterView, type ClusterViewDeps } from "./cluster-view.ts";
import { PodGroup } from "./pod-group.ts";
import { PodOutcomes, type PodOutcomesDeps } from "./pod-outcomes.ts";
import type { PodReplica } from "./pod-replica.ts";

export interface PodReplicasDeps extends ClusterViewDeps, PodOutcomesDeps, ApiObjectsDeps {
  versions: () => Promise<{ versions: ApiVersion[]; unreadable: readonly string[] }>;
  /** Gives pods their projects. */
  projects: Service;
}

export class PodReplicas implements ApiReplicas {
  private readonly deps: PodReplicasDeps;
  private readonly loop: ReconcileLoop;
  private readonly groups = new Map<string, PodGroup>();
  private readonly objects: ApiObjects;
  private readonly outcomes: PodOutcomes;
  private readonly view: ClusterView;
  private owner: ReplicasOwner | undefined;
  private stopPolling = () => {};
  private pauseMs = 0;
  private hasToldOfCluster = false;

  constructor(deps: PodReplicasDeps) {
    this.deps = deps;
    this.loop = new ReconcileLoop(deps.log, () => this.runOnce());
    const changed = () => this.changed();
    const remove = (replica: PodReplica, graceSeconds?: number) => this.view.removePod(replica, graceSeconds);
    this.outcomes = new PodOutcomes(deps, { changed, remove, group: (name) => this.groups.get(name) });
    this.objects = new ApiObjects(deps, {
      applied: (name, error) => this.outcomes.applied(name, error),
      removed: (name) => this.owner?.deletedGone(name),
    });
    this.view = new ClusterView(deps, {
      changed,
      group: (name) => this.groups.get(name),
      groups: () => this.groups.values(),
      eventsOf: (name) => this.outcomes.eventsOf(name),
      restarted: (name, replica, trouble) => this.outcomes.restarted(name, replica, trouble),
      told: (name, pod, state) => this.outcomes.tell(name, pod, state),
      unprepared: (name, replica) => this.outcomes.unprepared(name, replica),
      deploymentChanged: (name, generation) => {
        if (this.objects.isForeign(name, generation)) this.loop.soon();
      },
      listed: () => this.loop.soon(),
    });
  }

  serve(owner: ReplicasOwner): void {
    this.owner = owner;
  }

  /** A cluster that is away comes back, and the last routes serve meanwhile. Throws if the namespace is another's. */
  async start(): Promise<void> {
    const isOpen = await this.open();
    if (isOpen) return this.begin();
    contain("the authority of workers", async () => {
      do await delay(APPLY_PAUSE_FIRST_MS);
      while (!this.loop.isStopped && !(await this.open()));
      if (!this.loop.isStopped) await this.begin();
    });
  }

  /** False if the cluster does not answer. */
  private async open(): Promise<boolean> {
    try {
      await this.deps.authority.open();
      return true;
    } catch (error) {
      if (error instanceof CannotStart) throw error;
      if (!this.hasToldOfCluster)
        this.deps.log.error(
          { event: "cluster_failed", err: error },
          "the cluster cannot be used; tried again",
        );
      this.hasToldOfCluster = true;
      return false;
    }
  }

  private async begin(): Promise<void> {
    await this.deps.projects.start();
    await this.view.start();
    this.stopPolling = every(CERTIFICATES_POLL_MS, "the certificates of workers", () => this.loop.soon());
    this.loop.soon();
  }

  /** The pods go on. */
  async stop(): Promise<void> {
    this.stopPolling();
    await this.loop.stop();
    await this.view.stop();
    await this.deps.projects.stop();
    this.deps.client.close();
    for (const group of this.groups.values()) for (const replica of group.workers) replica.end();
  }

  /** The cluster keeps them: the next controller finds them, and gateways of others send to them. */
  async drainAll(): Promise<void> {}

  reconcile(): Promise<void> {
    return this.loop.run();
  }

  get names(): string[] {
    return [...this.groups.keys()];
  }

  group(name: string): PodGroup | undefined {
    return this.groups.get(name);
  }

  isUnsettled(name: string): boolean {
    return this.view.isSettling && (this.groups.get(name)?.isUnsettled ?? true);
  }

  restarts(name: string): number {
    return this.outcomes.restarts(name);
  }

  isCrashing(name: string): boolean {
    return this.groups.get(name)?.isCrashing ?? false;
  }

  setWanted(name: string, replicas: number, because: string): void {
    const group = this.groups.get(name);
    if (group === undefined) return;
    group.wantedBecause = because;
    if (group.wanted === replicas) return;
    this.deps.log.info(
      { event: "replicas_wanted", api: name, from: group.wanted, to: replicas, because },
      "the replica count changed",
    );
    group.wanted = replicas;
    this.changed();
    this.loop.soon();
  }

  kill(workerId: string): void {
    this.outcomes.kill(this.find(workerId));
  }

  replace(workerId: string): void {
    this.outcomes.replace(this.find(workerId));
  }

  /** The cluster itself ends the pods of a former rollout first. */
  async cancelFormerRollouts(): Promise<void> {
    await this.reconcile();
  }

  private find(workerId: string): PodReplica | undefined {
    for (const group of this.groups.values()) {
      const replica = group.replicas.get(workerId);
      if (replica !== undefined) return replica;
    }
    return undefined;
  }

  private changed(): void {
    if (this.loop.isStopped) return;
    this.owner?.replicasChanged();
    // How many pods there should be depends on which of them serve.
    if ([...this.groups.values()].some(({ isWearing }) => isWearing)) this.loop.soon();
  }

  /** Retried with growing pauses while the cluster does not answer. */
  private async runOnce(): Promise<void> {
    if (!this.view.isListed) return;
    const { versions, unreadable } = await this.deps.versions();
    const realtime = versions.filter(({ config }) => config.kind === "RealtimeAPI");
    for (const version of realtime) this.renew(version);
    const kept = new Set([...realtime.map(({ name }) => name), ...unreadable]);
    for (const name of this.names) if (!kept.has(name)) this.forget(name);
    const isDone = await this.objects.bring(this.groups.values(), kept, this.view.deployed);
    this.pauseMs = isDone
      ? 0
      : Math.min(APPLY_PAUSE_MAX_MS, Math.max(APPLY_PAUSE_FIRST_MS, 2 * this.pauseMs));
    if (!isDone) this.loop.after(this.pauseMs);
  }

  /** The group of a new version goes on with the pods of the former one. */
  private renew(version: ApiVersion): void {
    const { name, api_id, predictor_id } = version;
    const former = this.groups.get(name);
    if (former?.version.api_id === api_id && former.version.predictor_id === predictor_id) return;
    const group = new PodGroup(version, former ?? this.view.wantedBefore(version), former);
    this.groups.set(name, group);
    if (former === undefined) this.view.adopt(name);
    group.judge();
    this.changed();
  }

  /** Its pods finish what they have, and the cluster ends them. */
  private forget(name: string): void {
    for (const replica of this.groups.get(name)?.workers ?? []) replica.end();
    this.groups.delete(name);
  }
}
