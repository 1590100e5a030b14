/**
 * Keeps the wanted workers of each real-time API running. `runOnce` compares the wanted state with the actual one.
 * Every change triggers it.
 */

import { setTimeout as schedule } from "node:timers";
import type { Service } from "../../base/service.ts";
import type { WorkerRecord } from "../../database/worker-rows.ts";
import type { ReplicasOwner } from "../serving/api-replicas.ts";
import { Adoption, type AdoptionDeps } from "./adoption.ts";
import { ReconcileLoop } from "./reconcile-loop.ts";
import type { ReplicaGroup } from "./replica-group.ts";
import { ReplicaGroups, type ReplicaGroupsDeps } from "./replica-groups.ts";
import { ReplicaLifecycle, type ReplicaLifecycleDeps } from "./replica-lifecycle.ts";
import { ReplicaOutcomes, type ReplicaOutcomesDeps } from "./replica-outcomes.ts";
import { Rollouts, type RolloutsDeps } from "./rollouts.ts";
import { finishMsOf } from "./start-worker.ts";

export interface ReplicasDeps
  extends ReplicaGroupsDeps,
    ReplicaLifecycleDeps,
    ReplicaOutcomesDeps,
    RolloutsDeps,
    AdoptionDeps {}

export class Replicas implements Service {
  private readonly deps: ReplicasDeps;
  private readonly loop: ReconcileLoop;
  private readonly groups: ReplicaGroups;
  private readonly outcomes: ReplicaOutcomes;
  private readonly lifecycle: ReplicaLifecycle;
  private readonly rollouts: Rollouts;
  private readonly adoption: Adoption;
  private drained: Promise<void> | undefined;

  /** `orphans` are the replicas that a former controller started. */
  constructor(deps: ReplicasDeps, orphans: readonly WorkerRecord[]) {
    this.deps = deps;
    this.loop = new ReconcileLoop(deps.log, () => this.runOnce());
    this.groups = new ReplicaGroups(deps, this.loop);
    this.outcomes = new ReplicaOutcomes(deps, this.groups, this.loop);
    const { loop, groups, outcomes } = this;
    this.lifecycle = new ReplicaLifecycle(deps, { loop, groups, outcomes });
    const { lifecycle } = this;
    this.rollouts = new Rollouts(deps, { loop, lifecycle, outcomes });
    this.adoption = new Adoption(deps, { groups, lifecycle, outcomes }, orphans);
  }

  /** Sets the receiver of events. */
  serve(owner: ReplicasOwner): void {
    this.outcomes.serve(owner);
  }

  async start(): Promise<void> {
    await this.updateVersions();
    await this.adoption.adoptReadable();
    for (const group of this.groups.all) this.outcomes.contain(group.version.name, () => group.resume());
    // This runs before jobs ask for compute: what served before a restart of the controller or the machine comes first.
    await this.reconcile();
  }

  /**
   * Leaves the replicas running. The next controller adopts them, and gateways continue to send to them. Waits instead
   * for a `drainAll` that has begun.
   */
  async stop(): Promise<void> {
    await this.loop.stop();
    await this.drained;
    for (const worker of this.groups.workers) worker.detach();
  }

  /** Stops the server for good: replicas finish their requests. */
  drainAll(graceMs: number): Promise<void> {
    this.drained ??= this.drainEach(graceMs);
    return this.drained;
  }

  private async drainEach(graceMs: number): Promise<void> {
    const { workers } = this.groups;
    const stopped = this.loop.stop();
    for (const worker of workers) worker.drain(graceMs);
    while (workers.some((worker) => worker.state !== "gone"))
      await new Promise((resolve) => schedule(resolve, 20));
    await stopped;
  }

  /** Compares the wanted state with the actual one. Calls during a run cause one more run. */
  reconcile(): Promise<void> {
    return this.loop.run();
  }

  /** The APIs that have replicas, or should have some. */
  get names(): string[] {
    return this.groups.names;
  }

  group(name: string): ReplicaGroup | undefined {
    return this.groups.get(name);
  }

  /** How many of an API's serving workers ended unexpectedly since this controller started. */
  restarts(name: string): number {
    return this.outcomes.restarts(name);
  }

  /** Whether an API's replicas keep dying soon after they became ready. */
  isCrashing(name: string): boolean {
    return this.groups.get(name)?.isCrashing(performance.now()) ?? false;
  }

  /** Sets the wanted replica count. */
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
    this.outcomes.changed();
  }

  /** Kills a worker, because a gateway found a request past its deadline there. */
  kill(workerId: string): void {
    for (const worker of this.groups.workers) if (worker.identity.worker_id === workerId) worker.kill();
  }

  /**
   * The same for a worker that also runs other requests: those get time to finish, and a new replica starts at once.
   */
  replace(workerId: string): void {
    for (const { workers, version } of this.groups.all) {
      const found = workers.filter((worker) => worker.identity.worker_id === workerId);
      this.lifecycle.retire(found, finishMsOf(version));
    }
    this.loop.soon();
  }

  /**
   * Ends workers of former rollouts that are still starting. Otherwise they would hold their compute until their
   * `__init__` is over. They have received no requests.
   */
  async cancelFormerRollouts(names: readonly string[]): Promise<void> {
    await this.reconcile();
    for (const name of names) {
      const { workers, version } = this.groups.get(name) ?? { workers: [], version: undefined };
      const former = workers.filter((worker) => worker.predictor_id !== version?.predictor_id);
      for (const worker of former) if (!worker.hasServed) worker.kill();
    }
  }

  private async runOnce(): Promise<void> {
    await this.updateVersions();
    await this.adoption.adoptReadable();
    for (const group of this.groups.all)
      this.outcomes.contain(group.version.name, () => this.rollouts.reconcile(group));
  }

  private async updateVersions(): Promise<void> {
    const { deleted, changed } = await this.groups.compare();
    for (const { workers, places } of deleted) {
      this.lifecycle.retire(workers);
      places.release();
    }
    for (const version of changed) this.outcomes.contain(version.name, () => this.groups.renew(version));
  }
}
