/**
 * Keeps as many replicas of each real-time API running as it is deployed with. `runOnce` compares what is wanted with
 * what is there and acts; every change triggers it. New replicas are ready before old ones drain.
 */
import { setTimeout as schedule } from "node:timers";
import type { Log } from "../base/log.ts";
import { isSameProcess, signalGroup } from "../base/process-identity.ts";
import type { Service } from "../base/service.ts";
import { describeFault } from "../contracts/faults.ts";
import type { WorkerRecord } from "../database/worker-records.ts";
import type { RunningWorker, WorkerExit } from "../engine/engine.ts";
import { describeExit } from "../engine/worker-exit.ts";
import type { Init } from "../protocol/messages.ts";
import type { ApiVersion } from "./api-store.ts";
import { Replica } from "./replica.ts";

const DRAIN_GRACE_MS = 60_000;
const BACKOFF_FIRST_MS = 500;
const BACKOFF_MAX_MS = 60_000;
/** A replica that lived this long counts as healthy: the next start is immediate again. */
const HEALTHY_AFTER_MS = 10_000;

export interface ReplicasDeps {
  epoch: number;
  log: Log;
  versions: () => Promise<ApiVersion[]>;
  /** Starts a worker of this version with its part of the machine. Throws where there is none. */
  start: (version: ApiVersion) => Promise<RunningWorker>;
  /** Takes a worker over that a former controller started; undefined when it is gone. */
  adopt: (version: ApiVersion, record: WorkerRecord) => RunningWorker | undefined;
  forget: (workerId: string) => Promise<void>;
  initOf: (version: ApiVersion) => Init;
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

interface GroupState {
  upToDate: number;
  requested: number;
  failure: string | undefined;
  replicas: ReplicaState[];
}

interface Group {
  version: ApiVersion;
  replicas: Replica[];
  starting: number;
  /** Why the newest version has no replica, and when it is tried again. */
  failure: string | undefined;
  backoffMs: number;
  retryAtMs: number;
}

export class Replicas implements Service {
  private readonly deps: ReplicasDeps;
  private readonly groups = new Map<string, Group>();
  private readonly orphans: readonly WorkerRecord[];
  private running: Promise<void> | undefined;
  private isAgain = false;
  private isStopped = false;

  /** `orphans`: the replicas that a former controller started. */
  constructor(deps: ReplicasDeps, orphans: readonly WorkerRecord[]) {
    this.deps = deps;
    this.orphans = orphans;
  }

  async start(): Promise<void> {
    await this.updateVersions();
    for (const record of this.orphans) await this.adopt(record);
    void this.reconcile();
  }

  /** Replicas live on: the next controller adopts them, and gateways go on sending to them. */
  async stop(): Promise<void> {
    this.isStopped = true;
    await this.running;
    for (const { replicas } of this.groups.values()) for (const replica of replicas) replica.detach();
  }

  /** The server goes down for good: replicas finish what they have. */
  async drainAll(graceMs: number): Promise<void> {
    this.isStopped = true;
    const all = [...this.groups.values()].flatMap((group) => group.replicas);
    for (const replica of all) replica.drain(graceMs);
    while (all.some((replica) => replica.state !== "gone"))
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

  serving(name: string): Replica[] {
    return (this.groups.get(name)?.replicas ?? []).filter((replica) => replica.state === "ready");
  }

  /** The state of an API for `get`: replicas of the current version that are ready, and what is wrong. */
  state(name: string): GroupState {
    const group = this.groups.get(name);
    if (group === undefined) return { upToDate: 0, requested: 0, failure: undefined, replicas: [] };
    const upToDate = this.serving(name).filter(
      (replica) => replica.predictor_id === group.version.predictor_id,
    ).length;
    return {
      upToDate,
      requested: group.version.config.autoscaling.min_replicas,
      failure: upToDate > 0 ? undefined : group.failure,
      replicas: group.replicas.map((replica) => ({
        worker_id: replica.identity.worker_id,
        pid: replica.identity.pid,
        state: replica.state,
        is_up_to_date: replica.predictor_id === group.version.predictor_id,
      })),
    };
  }

  /** A gateway found a request past its deadline there. */
  kill(workerId: string): void {
    for (const { replicas } of this.groups.values()) {
      for (const replica of replicas) if (replica.identity.worker_id === workerId) replica.kill();
    }
  }

  /** The same where others run beside it: those have `graceMs` to finish, and a new replica takes its place at once. */
  replace(workerId: string, graceMs: number): void {
    for (const { replicas } of this.groups.values()) {
      this.retire(
        replicas.filter((replica) => replica.identity.worker_id === workerId),
        graceMs,
      );
    }
    void this.reconcile();
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
    for (const [name, group] of this.groups) {
      const { predictor_id, config } = group.version;
      const wanted = group.version.config.kind === "RealtimeAPI" ? config.autoscaling.min_replicas : 0;
      const current = group.replicas.filter(
        (replica) => replica.predictor_id === predictor_id && replica.state !== "draining",
      );
      const missing = performance.now() < group.retryAtMs ? 0 : wanted - current.length - group.starting;
      for (let i = 0; i < missing; i++) void this.startOne(name, group);
      const ready = current.filter((replica) => replica.state === "ready");
      const surplus = current.slice(wanted);
      const old =
        ready.length >= wanted
          ? group.replicas.filter((replica) => replica.predictor_id !== predictor_id)
          : [];
      this.retire([...surplus, ...old]);
    }
  }

  private retire(replicas: Replica[], graceMs = DRAIN_GRACE_MS): void {
    const leaving = replicas.filter((replica) => replica.state !== "draining");
    for (const replica of leaving) replica.drain(graceMs);
    if (leaving.length > 0) this.deps.onChange();
  }

  private async updateVersions(): Promise<void> {
    const versions = new Map(
      (await this.deps.versions())
        .filter((version) => version.config.kind === "RealtimeAPI")
        .map((version) => [version.name, version]),
    );
    for (const [name, group] of this.groups) {
      if (versions.has(name)) continue;
      this.retire(group.replicas);
      this.groups.delete(name);
    }
    for (const [name, version] of versions) {
      const group = this.groups.get(name);
      if (group === undefined) this.groups.set(name, newGroup(version));
      else if (group.version.api_id !== version.api_id || group.version.predictor_id !== version.predictor_id)
        this.groups.set(name, { ...newGroup(version), replicas: group.replicas });
    }
  }

  private async startOne(name: string, group: Group): Promise<void> {
    group.starting++;
    try {
      const worker = await this.deps.start(group.version);
      this.add(group, worker, group.version.predictor_id);
    } catch (error) {
      this.failed(name, group, (error as Error).message);
    } finally {
      group.starting--;
    }
    // The deployment may have changed while the worker was starting.
    void this.reconcile();
  }

  private async adopt(record: WorkerRecord): Promise<void> {
    const group = this.groups.get(record.api_name);
    const version = group?.version;
    const worker = version && this.deps.adopt(version, record);
    if (group === undefined && isSameProcess(record.pid, record.process_start))
      signalGroup(record.pid, "SIGKILL");
    if (group === undefined || worker === undefined) return this.deps.forget(record.worker_id);
    this.add(group, worker, record.predictor_id);
  }

  private add(group: Group, worker: RunningWorker, predictorId: string): void {
    const replica = new Replica(
      worker,
      { api_name: group.version.name, predictor_id: predictorId },
      {
        onReady: () => {
          group.failure = undefined;
          this.changed();
        },
        onFailed: (_, fault) => this.failed(group.version.name, group, describeFault(fault)),
        onGone: (gone, exit, wasServing) => this.gone(gone, exit, wasServing),
      },
    );
    (this.groups.get(group.version.name) ?? group).replicas.push(replica);
    void replica.connect(this.deps.initOf(group.version), this.deps.epoch);
  }

  private gone(replica: Replica, exit: WorkerExit, wasServing: boolean): void {
    void this.deps.forget(replica.identity.worker_id);
    const group = this.groups.get(replica.api_name);
    if (group === undefined) return;
    group.replicas = group.replicas.filter((other) => other !== replica);
    const livedMs = performance.now() - replica.startedMs;
    // The first death is repaired at once; one that dies young again and again waits longer each time.
    if (livedMs > HEALTHY_AFTER_MS) group.backoffMs = 0;
    else if (wasServing) this.waitBeforeNext(group, group.backoffMs);
    if (exit.outOfMemory !== undefined) group.failure = `a replica ${describeExit(exit)}`;
    if (!this.isStopped)
      this.deps.log.warn(
        { api: replica.api_name, worker: replica.identity.worker_id, ...exit },
        "a replica is gone",
      );
    this.changed();
  }

  private failed(name: string, group: Group, message: string): void {
    group.failure = message;
    const waitMs = Math.max(BACKOFF_FIRST_MS, group.backoffMs);
    this.deps.log.warn({ api: name, retry_in_ms: waitMs, message }, "a replica could not be set up");
    this.waitBeforeNext(group, waitMs);
  }

  private waitBeforeNext(group: Group, waitMs: number): void {
    group.retryAtMs = Math.max(group.retryAtMs, performance.now() + waitMs);
    group.backoffMs = Math.min(BACKOFF_MAX_MS, Math.max(BACKOFF_FIRST_MS, waitMs * 2));
    schedule(() => void this.reconcile(), waitMs + 1).unref();
  }

  private changed(): void {
    if (this.isStopped) return;
    this.deps.onChange();
    void this.reconcile();
  }
}

function newGroup(version: ApiVersion): Group {
  return { version, replicas: [], starting: 0, failure: undefined, backoffMs: 0, retryAtMs: 0 };
}
