/**
 * Keeps the workers of each real-time API as they are wanted. `runOnce` compares what is wanted with what is there and
 * acts by `planRollout`; every change triggers it.
 */

import { setTimeout as schedule } from "node:timers";
import { contain, inBackground } from "../base/boundary.ts";
import type { Log } from "../base/log.ts";
import type { Service } from "../base/service.ts";
import { describeFault } from "../contracts/faults.ts";
import { PREDICTION_TIMEOUT_DEFAULT_MS } from "../contracts/limits.ts";
import type { WorkerRecord } from "../database/worker-records.ts";
import type { Compute, ComputeAccount, Grant } from "../engine/compute-account.ts";
import type { RunningWorker, WorkerExit } from "../engine/engine.ts";
import { describeExit } from "../engine/worker-exit.ts";
import type { Init } from "../protocol/messages.ts";
import type { ApiVersion } from "./api-store.ts";
import { type Fleet, type Plan, planRollout } from "./plan-rollout.ts";
import { Replica } from "./replica.ts";
import { inOrderOfLeaving, ReplicaGroup } from "./replica-group.ts";
import { ReplicaPlaces } from "./replica-places.ts";
import { timeoutMsOf } from "./start-worker.ts";

/** Requests past their time are ended by gateways; a stream may go on for as long as it is read. */
const DRAIN_GRACE_MS = 15 * 60_000;
/** A replica that lived this long counts as healthy: the next start is immediate again. */
const HEALTHY_AFTER_MS = 10_000;
const REPLACE_MARGIN_MS = 5_000;
/** Whether there is room by now is looked at after this: also an old replica may have become enough for a new one. */
const ROOM_LOOK_MS = 1_000;

export interface ReplicasDeps {
  epoch: number;
  log: Log;
  /** Also the names of those that cannot be read now: what there is of them stays. */
  versions: () => Promise<{ versions: ApiVersion[]; unreadable: readonly string[] }>;
  account: ComputeAccount;
  /** What one worker of this version takes of the account. */
  computeOf: (version: ApiVersion) => Compute;
  start: (version: ApiVersion, gpus: readonly string[]) => Promise<RunningWorker>;
  /** Takes a worker over that a former controller started; undefined when it is gone. */
  adopt: (version: ApiVersion, record: WorkerRecord) => RunningWorker | undefined;
  /** Ends one of an API that is not there any more. */
  end: (record: WorkerRecord) => void;
  forget: (workerId: string) => Promise<void>;
  /** A worker of an API that was deleted is gone. */
  onDeletedGone: (name: string) => void;
  initOf: (version: ApiVersion) => Init;
  /** A line of the server's own in the API's log. */
  apiLog: (name: string, line: string) => void;
  /** The replicas that serve have changed. */
  onChange: () => void;
}

export interface ReplicaState {
  worker_id: string;
  pid: number;
  state: Replica["state"];
  /** Of the version that is deployed now. */
  is_up_to_date: boolean;
}

export class Replicas implements Service {
  private readonly deps: ReplicasDeps;
  private readonly groups = new Map<string, ReplicaGroup>();
  private readonly restartCounts = new Map<string, number>();
  /** Not adopted yet. */
  private orphans: readonly WorkerRecord[];
  private unreadable: readonly string[] = [];
  private running: Promise<void> | undefined;
  private roomTimer: NodeJS.Timeout | undefined;
  private isAgain = false;
  private isStopped = false;

  /** `orphans`: the replicas that a former controller started. */
  constructor(deps: ReplicasDeps, orphans: readonly WorkerRecord[]) {
    this.deps = deps;
    this.orphans = orphans;
  }

  async start(): Promise<void> {
    await this.updateVersions();
    await this.adoptOrphans();
    for (const [name, group] of this.groups) this.inside(name, () => this.resume(group));
    // Before jobs ask for compute: what served before the controller or the machine went down comes first.
    await this.reconcile();
  }

  /** Replicas live on: the next controller adopts them, and gateways go on sending to them. */
  async stop(): Promise<void> {
    this.isStopped = true;
    await this.running;
    for (const { workers } of this.groups.values()) for (const worker of workers) worker.detach();
  }

  /** The server goes down for good: replicas finish what they have. */
  async drainAll(graceMs: number): Promise<void> {
    this.isStopped = true;
    const all = [...this.groups.values()].flatMap((group) => group.workers);
    for (const worker of all) worker.drain(graceMs);
    while (all.some((worker) => worker.state !== "gone"))
      await new Promise((resolve) => schedule(resolve, 20));
  }

  /** Looks again at what is deployed. Calls while one is running are answered by one more run. */
  async reconcile(): Promise<void> {
    if (this.isStopped) return;
    this.isAgain = true;
    this.running ??= this.loop().finally(() => {
      this.running = undefined;
    });
    return this.running;
  }

  /** The APIs that have replicas, or should. */
  get names(): string[] {
    return [...this.groups.keys()];
  }

  group(name: string): ReplicaGroup | undefined {
    return this.groups.get(name);
  }

  /** How many of an API's workers ended unasked, since this controller started. */
  restarts(name: string): number {
    return this.restartCounts.get(name) ?? 0;
  }

  /** As many replicas are wanted from now on. */
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

  /** A gateway found a request past its deadline there. */
  kill(workerId: string): void {
    for (const { workers } of this.groups.values()) {
      for (const worker of workers) if (worker.identity.worker_id === workerId) worker.kill();
    }
  }

  /** The same where others run beside it: those have their time to finish, and a new replica takes its place at once. */
  replace(workerId: string): void {
    for (const { workers, version } of this.groups.values()) {
      const found = workers.filter((worker) => worker.identity.worker_id === workerId);
      this.retire(found, (timeoutMsOf(version) ?? PREDICTION_TIMEOUT_DEFAULT_MS) + REPLACE_MARGIN_MS);
    }
    inBackground(this.reconcile());
  }

  /**
   * Ends at once what a rollout before the newest version is still starting. It would end by itself after its `__init__`, and hold its part
   * of the machine until then. No request has come to it.
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

  /** What it throws is a failure of this API, which is tried again later and later. */
  private inside(name: string, work: () => unknown): void {
    contain(`replicas of API ${name}`, work, (error) => this.faulty(name, error));
  }

  private faulty(name: string, error: Error): void {
    this.deps.log.error({ err: error, api: name }, "an API could not be looked after");
    const group = this.groups.get(name);
    if (group !== undefined && !this.isStopped) this.failed(name, group, error.message);
  }

  private reconcileOne(name: string, group: ReplicaGroup): void {
    // Those whose end could not be seen to.
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

  /** Keeps for what its missing replicas wait, and says it once in the API's log. */
  private lacks(name: string, group: ReplicaGroup, workers: number): void {
    const wasLacking = group.lack !== undefined;
    group.lack = workers > 0 ? group.places.describe() : undefined;
    if (group.lack === undefined) group.hasToldOfLack = false;
    // Not of what is there a moment later.
    if (group.lack === undefined || !wasLacking || group.hasToldOfLack) return;
    group.hasToldOfLack = true;
    const replicas = Math.ceil(workers / group.perReplica);
    this.deps.apiLog(name, `${replicas} of ${group.wanted} replicas wait for compute: ${group.lack}`);
  }

  private retire(workers: Replica[], graceMs = DRAIN_GRACE_MS): void {
    const leaving = workers.filter((worker) => worker.state !== "draining");
    for (const worker of leaving) worker.drain(graceMs);
    // What leaves is in nobody's way any more, however long it takes.
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
    const onGranted = () => inBackground(this.reconcile());
    return new ReplicaPlaces({ account: this.deps.account, holder: `API ${name}`, onGranted });
  }

  private async startOne(name: string, group: ReplicaGroup): Promise<void> {
    const grant = group.places.take();
    if (grant === undefined) return this.lookAgain();
    group.starting++;
    try {
      const worker = await this.deps.start(group.version, grant.gpus);
      this.add(group, worker, { predictor_id: group.version.predictor_id, grant });
      // The API was deleted meanwhile: nothing else looks at this group any more.
      if (!this.groups.has(name)) this.retire(group.workers);
    } catch (error) {
      this.vacate(name, grant);
      this.failed(name, group, (error as Error).message);
    } finally {
      group.starting--;
    }
    // The deployment may have changed while the worker was starting.
    inBackground(this.reconcile());
  }

  /** Those of an API that cannot be read now serve on by its last good route, and are adopted when it can. */
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
    const grant = group.places.takeAgain(record.gpus.split(",").filter(Boolean));
    this.add(group, worker, { predictor_id: record.predictor_id, grant });
  }

  /** What a former controller had scaled to goes on: its replicas tell. */
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
    { predictor_id, grant }: { predictor_id: string; grant: Grant },
  ): void {
    const replica = new Replica(
      worker,
      { api_name: group.version.name, predictor_id, grant },
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
    // Also where its end cannot be seen to.
    contain(`the place of a replica of ${group.version.name}`, async () => {
      await worker.exited;
      this.vacate(replica.api_name, replica.grant);
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

  /** The place of a worker that is gone is its successor's; of an API that is deleted, everybody's. */
  private vacate(name: string, grant: Grant | undefined): void {
    if (grant === undefined) return;
    const places = this.groups.get(name)?.places;
    if (places === undefined) this.deps.account.giveBack(grant);
    else places.keep(grant);
    inBackground(this.reconcile());
  }

  private gone(replica: Replica, exit: WorkerExit, wasServing: boolean): void {
    const group = this.groups.get(replica.api_name);
    contain(`a replica of ${replica.api_name}`, async () => {
      await this.deps.forget(replica.identity.worker_id);
      if (group === undefined) this.deps.onDeletedGone(replica.api_name);
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
    this.deps.onChange();
  }

  private waitBeforeNext(group: ReplicaGroup, waitMs: number): void {
    group.waitBeforeNext(waitMs);
    schedule(() => inBackground(this.reconcile()), waitMs + 1).unref();
  }

  /** One timer, however often it is asked for: each look would bring another one otherwise. */
  private lookAgain(): void {
    this.roomTimer ??= schedule(() => {
      this.roomTimer = undefined;
      inBackground(this.reconcile());
    }, ROOM_LOOK_MS).unref();
  }

  private changed(): void {
    if (this.isStopped) return;
    this.deps.onChange();
    inBackground(this.reconcile());
  }
}

/** Something is on its way: that some replicas are missing is no lack yet. */
function isMoving({ fresh, leaving }: Fleet, { start, handsOver }: Plan): boolean {
  return fresh.coming + start + leaving > 0 || handsOver;
}
