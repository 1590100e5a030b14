/** The workers of one real-time API: how many are wanted, which exist, and why some are missing. */

import type { ApiVersion } from "../records/api-rows.ts";
import type { FailureKind } from "../serving/api-replicas.ts";
import { type Fleet, splitByAge, wantedBefore } from "./plan-rollout.ts";
import type { Replica } from "./replica.ts";
import type { ReplicaPlaces } from "./replica-places.ts";
import { firstReplicas, scalingRules, updateStrategy } from "./scaling-rules.ts";

/** A replica that lived this long counts as healthy, and its successor starts at once. */
export const HEALTHY_AFTER_MS = 10_000;
const BACKOFF_FIRST_MS = 500;
const BACKOFF_MAX_MS = 60_000;

export class ReplicaGroup {
  readonly version: ApiVersion;
  readonly places: ReplicaPlaces;
  /** The wanted replicas, each of `processes_per_replica` workers. */
  wanted: number;
  /** The reason for this number. */
  wantedBecause: string;
  workers: Replica[] = [];
  starting = 0;
  /** Why the newest version has no replica. */
  failure: string | undefined;
  failureKind: FailureKind = "other";
  /** How many replicas in a row died before they were ready, without a report. */
  deathsInStart = 0;
  /** How the last replica ended that was not asked to. */
  lastExit: string | undefined;
  failedForMemory = false;
  /** A replica of this version has been ready. */
  hasServed = false;
  /** What the missing replicas wait for. */
  lack: string | undefined;
  /** The API's log has a line about it. */
  hasToldOfLack = false;
  backoffMs = 0;
  private retryAtMs = 0;

  /** `before`: the workers of the same API's former version, which serve until new ones do. */
  constructor(version: ApiVersion, places: ReplicaPlaces, before?: ReplicaGroup) {
    const { min, max } = scalingRules(version.config);
    this.version = version;
    this.places = places;
    this.workers = before?.workers ?? [];
    this.wanted = Math.min(max, Math.max(min, before?.wanted ?? firstReplicas(version.config)));
    this.wantedBecause = before?.wanted === this.wanted ? before.wantedBecause : "as configured";
  }

  get perReplica(): number {
    return this.version.config.predictor.processes_per_replica;
  }

  /** Workers of all versions that serve. */
  get serving(): Replica[] {
    return this.workers.filter((worker) => worker.state === "ready");
  }

  /** Complete replicas of the newest version that serve. */
  get upToDate(): number {
    const { predictor_id } = this.version;
    const ready = this.serving.filter((worker) => worker.predictor_id === predictor_id);
    return Math.floor(ready.length / this.perReplica);
  }

  /** Workers of the newest version that new ones do not replace. */
  get fresh(): Replica[] {
    return this.byAge.fresh;
  }

  /** How many successors start while the replicas that they will replace go on: as many as fit. */
  private get successors(): number {
    return Math.min(this.byAge.wearing, this.places.capacityLeft + this.places.spare);
  }

  private get byAge() {
    const { present, perReplica, wanted, leaving } = this;
    return splitByAge(present, {
      predictorId: this.version.predictor_id,
      wanted: wanted * perReplica,
      leaving,
    });
  }

  private get leaving(): number {
    return this.workers.length - this.present.length;
  }

  /** The old workers in the order in which they are stopped: first those that do not serve yet. */
  get oldInOrder(): Replica[] {
    return inOrderOfLeaving(this.byAge.old);
  }

  fleet(nowMs: number): Fleet {
    const { perReplica, wanted, places, oldInOrder } = this;
    const { surge, unavailable } = updateStrategy(this.version.config, wanted);
    const split = (workers: readonly Replica[]) => {
      const ready = workers.filter(({ state }) => state === "ready").length;
      return { ready, coming: workers.length - ready };
    };
    const fresh = split(this.fresh);
    return {
      wanted: wanted * perReplica + this.successors,
      perReplica,
      fresh: { ...fresh, coming: fresh.coming + this.starting },
      old: split(oldInOrder),
      leaving: this.leaving,
      surge: surge * perReplica,
      unavailable: unavailable * perReplica,
      spare: places.spare,
      capacityLeft: places.capacityLeft,
      canBorrow: places.canBorrow(oldInOrder),
      leavingForOne: places.leavingForOne(oldInOrder),
      isBackingOff: nowMs < this.retryAtMs,
      isFailing: this.failure !== undefined,
      hasServed: this.hasServed,
    };
  }

  /** Continues with the replica count of the former controller, as its workers show it. */
  resume(): void {
    const { config } = this.version;
    const { min_replicas, max_replicas } = config.autoscaling;
    const replicas = (workers: readonly Replica[]) => Math.ceil(workers.length / this.perReplica);
    const [fresh, old] = [replicas(this.fresh), replicas(this.oldInOrder)];
    const found = wantedBefore(fresh, old, updateStrategy(config, Math.max(fresh, old)).surge);
    if (found === 0 && min_replicas > 0) return;
    this.wanted = Math.max(min_replicas, Math.min(found, max_replicas ?? found));
    this.wantedBecause = "the replica count when the controller started";
  }

  /**
   * After the first death, the next worker starts at once. Workers that repeatedly die early are restarted with growing
   * pauses.
   */
  waitBeforeNext(waitMs: number): void {
    this.retryAtMs = Math.max(this.retryAtMs, performance.now() + waitMs);
    this.backoffMs = Math.min(BACKOFF_MAX_MS, Math.max(BACKOFF_FIRST_MS, waitMs * 2));
  }

  /**
   * Several of its replicas in a row have died soon after they became ready, and none has lived long since then.
   */
  isCrashing(nowMs: number): boolean {
    const isSteady = this.serving.some(({ startedMs }) => nowMs - startedMs > HEALTHY_AFTER_MS);
    return this.wanted > 0 && this.hasServed && this.backoffMs > BACKOFF_FIRST_MS && !isSteady;
  }

  get nextBackoffMs(): number {
    return Math.max(BACKOFF_FIRST_MS, this.backoffMs);
  }

  private get present(): Replica[] {
    return this.workers.filter(({ state }) => state === "initializing" || state === "ready");
  }
}

export function inOrderOfLeaving(workers: readonly Replica[]): Replica[] {
  return [...workers].sort((a, b) => Number(a.state === "ready") - Number(b.state === "ready"));
}
