/**
 * Keeps the wanted workers of each real-time API running. `runOnce` compares the wanted state with the actual one, and
 * follows `planRollout`. Every change triggers it.
 */

import { setTimeout as schedule } from "node:timers";
import { contain, inBackground } from "../../base/boundary.ts";
import type { Log } from "../../base/log.ts";
import type { Service } from "../../base/service.ts";
import { describeFault } from "../../contracts/faults.ts";
import { PREDICTION_TIMEOUT_DEFAULT_MS } from "../../contracts/limits.ts";
import type { WorkerRecord } from "../../database/worker-rows.ts";
import type { Compute, ComputeAccount, Reservation } from "../../engine/compute-account.ts";
import type { RunningWorker, WorkerExit } from "../../engine/engine.ts";
import { describeExit } from "../../engine/worker-exit.ts";
import type { Init } from "../../protocol/messages.ts";
import type { ApiVersion } from "../records/api-rows.ts";
import { type Fleet, type Plan, planRollout } from "./plan-rollout.ts";
import { Replica } from "./replica.ts";
import { inOrderOfLeaving, ReplicaGroup } from "./replica-group.ts";
import { ReplicaPlaces } from "./replica-places.ts";
import { timeoutMsOf } from "./start-worker.ts";

/**
 * How long a draining replica may take. Gateways end requests past their deadline; a stream may last as long as its
 * client reads.
 */
const DRAIN_GRACE_MS = 15 * 60_000;
/** A replica that lived this long counts as healthy, and its successor starts at once. */
const HEALTHY_AFTER_MS = 10_000;
const REPLACE_MARGIN_MS = 5_000;
/** How often free capacity is checked again. Also, an old replica may have become enough for a new one. */
const ROOM_POLL_MS = 1_000;

export interface ReplicasDeps {
  epoch: number;
  log: Log;
  /** Includes the names of APIs that cannot be read now, whose replicas stay. */
  versions: () => Promise<{ versions: ApiVersion[]; unreadable: readonly string[] }>;
  account: ComputeAccount;
  /** The compute that one worker of this version reserves. */
  computeOf: (version: ApiVersion) => Compute;
  start: (version: ApiVersion, gpus: readonly string[]) => Promise<RunningWorker>;
  /** Adopts a worker that a former controller started; undefined if it is gone. */
  adopt: (version: ApiVersion, record: WorkerRecord) => RunningWorker | undefined;
  /** Ends a worker of an API that no longer exists. */
  end: (record: WorkerRecord) => void;
  forget: (workerId: string) => Promise<void>;
  initOf: (version: ApiVersion) => Init;
  /** Writes a line of the server to the API's log. */
  apiLog: (name: string, line: string) => void;
}

/** Receives the events of replicas. */
export interface ReplicasOwner {
  /** The set of serving replicas has changed. */
  replicasChanged(): void;
  /** A worker of a deleted API is gone. */
  deletedGone(name: string): void;
}

const NO_OWNER: ReplicasOwner = { replicasChanged() {}, deletedGone() {} };

export class Replicas implements Service {
  private readonly deps: ReplicasDeps;
  private owner: ReplicasOwner = NO_OWNER;
  private readonly groups = new Map<string, ReplicaGroup>();
  private readonly restartCounts = new Map<string, number>();
  /** Workers that are not adopted yet. */
  private orphans: readonly WorkerRecord[];
  private unreadable: readonly string[] = [];
  private running: Promise<void> | undefined;
  private capacityTimer: NodeJS.Timeout | undefined;
  private isAgain = false;
  private isStopped = false;

  /** `orphans` are the replicas that a former controller started. */
  constructor(deps: ReplicasDeps, orphans: readonly WorkerRecord[]) {
    this.deps = deps;
    this.orphans = orphans;
  }

  /** Sets the receiver of events. */
  serve(owner: ReplicasOwner): void {
    this.owner = owner;
  }

  async start(): Promise<void> {
    await this.updateVersions();
    await this.adoptOrphans();
    for (const [name, group] of this.groups) this.inside(name, () => this.resume(group));
    // This runs before jobs ask for compute: what served before a restart of the controller or the machine comes first.
    await this.reconcile();
  }

  /** Leaves the replicas running. The next controller adopts them, and gateways continue to send to them. */
  async stop(): Promise<void> {
    this.isStopped = true;
    await this.running;
    for (const { workers } of this.groups.values()) for (const worker of workers) worker.detach();
  }

  /** Stops the server for good: replicas finish their requests. */
  async drainAll(graceMs: number): Promise<void> {
    this.isStopped = true;
    const all = [...this.groups.values()].flatMap((group) => group.workers);
    for (const worker of all) worker.drain(graceMs);
    while (all.some((worker) => worker.state !== "gone"))
      await new Promise((resolve) => schedule(resolve, 20));
  }

  /** Compares the wanted state with the actual one. Calls during a run cause one more run. */
  async reconcile(): Promise<void> {
    if (this.isStopped) return;
    this.isAgain = true;
    this.running ??= this.loop().finally(() => {
      this.running = undefined;
    });
    return this.running;
  }

  /** The APIs that have replicas, or should have some. */
  get names(): string[] {
    return [...this.groups.keys()];
  }

  group(name: string): ReplicaGroup | undefined {
    return this.groups.get(name);
  }

  /** How many of an API's serving workers ended unexpectedly since this controller started. */
  restarts(name: string): number {
    return this.restartCounts.get(name) ?? 0;
  }

  /** Sets the wanted replica count. */
  setWanted(name: string, replicas: number, because: string): void {
    const group = this.groups.get(name);
    if (group === undefined) return;
    group.wantedBecause = because;
    if (group.wanted === replicas) return;
    this.deps.log.info(
      { api: name, from: group.wanted, to: replicas, because },
      "another number of replicas",
    );
    group.wanted = replicas;
    this.changed();
  }

  /** Kills a worker, because a gateway found a request past its deadline there. */
  kill(workerId: string): void {
    for (const { workers } of this.groups.values()) {
      for (const worker of workers) if (worker.identity.worker_id === workerId) worker.kill();
    }
  }

  /**
   * The same for a worker that also runs other requests: those get time to finish, and a new replica starts at once.
   */
  replace(workerId: string): void {
    for (const { workers, version } of this.groups.values()) {
      const found = workers.filter((worker) => worker.identity.worker_id === workerId);
      this.retire(found, (timeoutMsOf(version) ?? PREDICTION_TIMEOUT_DEFAULT_MS) + REPLACE_MARGIN_MS);
    }
    inBackground(this.reconcile());
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

  private async loop(): Promise<void> {
    while (this.isAgain && !this.isStopped) {
      this.isAgain = false;
      await this.runOnce().catch((error: Error) =>
        this.deps.log.error({ err: error }, "replicas could not be reconciled"),
      );
    }
  }

  private async runOnce(): Promise<void> {
    await this.updateVersions();
    await this.adoptOrphans();
    for (const [name, group] of this.groups) this.inside(name, () => this.reconcileOne(name, group));
  }

  /** If `work` throws, this API has failed, and is retried with growing pauses. */
  private inside(name: string, work: () => unknown): void {
    contain(`replicas of API ${name}`, work, (error) => this.faulty(name, error));
  }

  private faulty(name: string, error: Error): void {
    this.deps.log.error({ err: error, api: name }, "an API could not be looked after");
    const group = this.groups.get(name);
    if (group !== undefined && !this.isStopped) this.failed(name, group, error.message);
  }

  private reconcileOne(name: string, group: ReplicaGroup): void {
    // Remove workers whose end was not handled.
    group.workers = group.workers.filter(({ state }) => state !== "gone");
    const fleet = group.fleet(performance.now());
    const plan = planRollout(fleet);
    const { places, oldInOrder } = group;
    if (plan.borrows) places.borrow(oldInOrder);
    for (let i = 0; i < plan.start; i++) this.inside(name, () => this.startOne(name, group));
    const leaving = oldInOrder.slice(0, plan.retireOld);
    if (plan.handsOver) places.handOver(leaving);
    places.keepOnly(plan.keep);
    places.waitFor(plan.waitFor);
    this.lacks(name, group, isMoving(fleet, plan) ? 0 : plan.waitFor);
    if (fleet.fresh.ready + fleet.fresh.coming + plan.start < fleet.wanted) this.lookAgain();
    this.retire([...inOrderOfLeaving(group.fresh).slice(0, plan.retireFresh), ...leaving]);
  }

  /** Records what missing replicas wait for, and logs it once in the API's log. */
  private lacks(name: string, group: ReplicaGroup, workers: number): void {
    const wasLacking = group.lack !== undefined;
    group.lack = workers > 0 ? group.places.describe() : undefined;
    if (group.lack === undefined) group.hasToldOfLack = false;
    // A lack that may be over a moment later is not logged.
    if (group.lack === undefined || !wasLacking || group.hasToldOfLack) return;
    group.hasToldOfLack = true;
    const replicas = Math.ceil(workers / group.perReplica);
    this.deps.apiLog(name, `${replicas} of ${group.wanted} replicas wait for compute: ${group.lack}`);
  }

  private retire(workers: Replica[], graceMs = DRAIN_GRACE_MS): void {
    const leaving = workers.filter((worker) => worker.state !== "draining");
    for (const worker of leaving) worker.drain(graceMs);
    // A draining worker no longer blocks a rollout, however long it takes.
    if (leaving.length > 0) this.changed();
  }

  private async updateVersions(): Promise<void> {
    const { versions: readable, unreadable } = await this.deps.versions();
    this.unreadable = unreadable;
    const versions = new Map(
      readable
        .filter((version) => version.config.kind === "RealtimeAPI")
        .map((version) => [version.name, version]),
    );
    for (const [name, group] of this.groups) {
      if (versions.has(name) || unreadable.includes(name)) continue;
      this.retire(group.workers);
      this.groups.delete(name);
      group.places.release();
    }
    for (const [name, version] of versions) {
      const group = this.groups.get(name);
      const isNew =
        group?.version.api_id !== version.api_id || group.version.predictor_id !== version.predictor_id;
      if (isNew) this.inside(name, () => this.renew(version, group));
    }
  }

  private renew(version: ApiVersion, before: ReplicaGroup | undefined): void {
    const { name } = version;
    const places = before?.places ?? this.placesOf(name);
    this.groups.set(name, new ReplicaGroup(version, places, before));
    places.fit(this.deps.computeOf(version), version.config.predictor.processes_per_replica);
  }

  private placesOf(name: string): ReplicaPlaces {
    const onReserved = () => inBackground(this.reconcile());
    return new ReplicaPlaces({ account: this.deps.account, holder: `API ${name}`, onReserved });
  }

  private async startOne(name: string, group: ReplicaGroup): Promise<void> {
    const reservation = group.places.take();
    if (reservation === undefined) return this.lookAgain();
    group.starting++;
    try {
      const worker = await this.deps.start(group.version, reservation.gpus);
      this.add(group, worker, { predictor_id: group.version.predictor_id, reservation });
      // The API was deleted meanwhile, so this group is no longer reconciled.
      if (!this.groups.has(name)) this.retire(group.workers);
    } catch (error) {
      this.vacate(name, reservation);
      this.failed(name, group, (error as Error).message);
    } finally {
      group.starting--;
    }
    // The deployment may have changed while the worker was starting.
    inBackground(this.reconcile());
  }

  /**
   * Workers of an API that cannot be read now continue to serve by its last good route. They are adopted once it can be
   * read.
   */
  private async adoptOrphans(): Promise<void> {
    const isLeft = ({ api_name }: WorkerRecord) => this.unreadable.includes(api_name);
    const ready = this.orphans.filter((record) => !isLeft(record));
    this.orphans = this.orphans.filter(isLeft);
    for (const record of ready)
      await this.adopt(record).catch((error: Error) => this.faulty(record.api_name, error));
  }

  private async adopt(record: WorkerRecord): Promise<void> {
    const group = this.groups.get(record.api_name);
    const version = group?.version;
    const worker = version && this.deps.adopt(version, record);
    if (group === undefined) this.deps.end(record);
    if (group === undefined || worker === undefined) return this.deps.forget(record.worker_id);
    const reservation = group.places.takeAgain(record.gpus.split(",").filter(Boolean));
    this.add(group, worker, { predictor_id: record.predictor_id, reservation });
  }

  /** Continues with the replica count of the former controller, which is the number of its replicas. */
  private resume(group: ReplicaGroup): void {
    const { min_replicas, max_replicas } = group.version.config.autoscaling;
    const found = Math.ceil(group.workers.length / group.perReplica);
    if (found === 0 && min_replicas > 0) return;
    group.wanted = Math.max(min_replicas, Math.min(found, max_replicas ?? found));
    group.wantedBecause = "as many as there were when the controller started";
  }

  private add(
    group: ReplicaGroup,
    worker: RunningWorker,
    { predictor_id, reservation }: { predictor_id: string; reservation: Reservation },
  ): void {
    const replica = new Replica(
      worker,
      { api_name: group.version.name, predictor_id, reservation },
      {
        onReady: () => {
          group.failure = undefined;
          if (predictor_id === group.version.predictor_id) group.hasServed = true;
          this.changed();
        },
        onFailed: (_, fault) => this.failed(group.version.name, group, describeFault(fault)),
        onGone: (gone, exit, wasServing) => this.gone(gone, exit, wasServing),
        onFault: (error) => this.faulty(group.version.name, error),
      },
    );
    (this.groups.get(group.version.name) ?? group).workers.push(replica);
    // This runs even if the replica's end cannot be handled.
    contain(`the place of a replica of ${group.version.name}`, async () => {
      await worker.exited;
      this.vacate(replica.api_name, replica.reservation);
    });
    contain(
      `a replica of ${group.version.name}`,
      () => replica.connect(this.deps.initOf(group.version), this.deps.epoch),
      (error) => {
        this.faulty(group.version.name, error);
        replica.kill();
      },
    );
  }

  /** Keeps the reservation of a worker that is gone for its successor. A deleted API's reservation is given back. */
  private vacate(name: string, reservation: Reservation | undefined): void {
    if (reservation === undefined) return;
    const places = this.groups.get(name)?.places;
    if (places === undefined) this.deps.account.giveBack(reservation);
    else places.keep(reservation);
    inBackground(this.reconcile());
  }

  private gone(replica: Replica, exit: WorkerExit, wasServing: boolean): void {
    const group = this.groups.get(replica.api_name);
    contain(`a replica of ${replica.api_name}`, async () => {
      await this.deps.forget(replica.identity.worker_id);
      if (group === undefined) this.owner.deletedGone(replica.api_name);
    });
    if (group === undefined) return;
    group.workers = group.workers.filter((other) => other !== replica);
    if (wasServing) this.restartCounts.set(group.version.name, this.restarts(group.version.name) + 1);
    const livedMs = performance.now() - replica.startedMs;
    if (livedMs > HEALTHY_AFTER_MS) group.backoffMs = 0;
    else if (wasServing) this.waitBeforeNext(group, group.backoffMs);
    if (exit.outOfMemory !== undefined) {
      group.failure = `a replica ${describeExit(exit)}`;
      group.failedForMemory = true;
    }
    if (!this.isStopped && !replica.isLeaving) {
      const { worker_id } = replica.identity;
      this.deps.log.warn({ api: replica.api_name, worker: worker_id, ...exit }, "a replica is gone");
      this.deps.apiLog(replica.api_name, `replica ${worker_id} ${describeExit(exit)}`);
    }
    this.changed();
  }

  private failed(name: string, group: ReplicaGroup, message: string): void {
    group.failure = message;
    group.failedForMemory = false;
    const waitMs = group.nextBackoffMs;
    this.deps.log.warn({ api: name, retry_in_ms: waitMs, message }, "a replica could not be set up");
    this.waitBeforeNext(group, waitMs);
    this.owner.replicasChanged();
  }

  private waitBeforeNext(group: ReplicaGroup, waitMs: number): void {
    group.waitBeforeNext(waitMs);
    schedule(() => inBackground(this.reconcile()), waitMs + 1).unref();
  }

  /** There is only one timer. Otherwise each reconciliation would add another one. */
  private lookAgain(): void {
    this.capacityTimer ??= schedule(() => {
      this.capacityTimer = undefined;
      inBackground(this.reconcile());
    }, ROOM_POLL_MS).unref();
  }

  private changed(): void {
    if (this.isStopped) return;
    this.owner.replicasChanged();
    inBackground(this.reconcile());
  }
}

/** While workers start or leave, missing replicas are not a lack yet. */
function isMoving({ fresh, leaving }: Fleet, { start, handsOver }: Plan): boolean {
  return fresh.coming + start + leaving > 0 || handsOver;
}
