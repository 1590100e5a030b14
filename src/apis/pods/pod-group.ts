/** The pods of one real-time API: how many are wanted, which exist, and why some are missing. */

import type { Pod } from "../../kubernetes/pod.ts";
import { podState } from "../../kubernetes/pod-state.ts";
import type { ApiVersion } from "../records/api-rows.ts";
import { firstReplicas, scalingRules } from "../replicas/scaling-rules.ts";
import type { FailureKind, ServedApi } from "../serving/api-replicas.ts";
import { judgePods } from "./judge-pods.ts";
import { planWear } from "./plan-wear.ts";
import type { PodReplica } from "./pod-replica.ts";

/** A worker that served for so long is no early death. */
const HEALTHY_AFTER_MS = 10_000;
/** So many in a row are no coincidence. */
const EARLY_DEATHS = 2;

export interface GroupBefore {
  wanted: number;
  wantedBecause: string;
}

export class PodGroup implements ServedApi {
  readonly version: ApiVersion;
  wanted: number;
  wantedBecause: string;
  /** By the names of the pods. */
  readonly replicas: Map<string, PodReplica>;
  /** The pods as the cluster shows them. */
  readonly pods: Map<string, Pod>;
  failure: string | undefined;
  failureKind: FailureKind = "other";
  lack: string | undefined;
  lastExit: string | undefined;
  /** Why the objects cannot be applied; undefined if they are. */
  notApplied: string | undefined;
  /** Why the cluster creates no pods, in its own words. */
  refused: string | undefined;
  earlyDeaths = 0;
  /** So many pods more than wanted the Deployment has now, because others are worn. */
  extra = 0;

  /** `before`: the replica count that goes on. `former`: the same API's group before this version. */
  constructor(version: ApiVersion, before: GroupBefore | undefined, former?: PodGroup) {
    const { min, max } = scalingRules(version.config);
    this.version = version;
    this.replicas = former?.replicas ?? new Map();
    this.pods = former?.pods ?? new Map();
    this.wanted = Math.min(max, Math.max(min, before?.wanted ?? firstReplicas(version.config)));
    this.wantedBecause = before?.wanted === this.wanted ? before.wantedBecause : "as configured";
  }

  get perReplica(): number {
    return this.version.config.predictor.processes_per_replica;
  }

  get workers(): PodReplica[] {
    return [...this.replicas.values()];
  }

  get serving(): PodReplica[] {
    return this.workers.filter(({ state }) => state === "ready");
  }

  get upToDate(): number {
    return Math.floor(this.serving.filter((replica) => this.isNew(replica)).length / this.perReplica);
  }

  get failedForMemory(): boolean {
    return this.failureKind === "memory";
  }

  /** Several of its workers in a row have died soon after they became ready, and none has served for long. */
  get isCrashing(): boolean {
    return (
      this.earlyDeaths >= EARLY_DEATHS && !this.serving.some(({ servedMs }) => servedMs > HEALTHY_AFTER_MS)
    );
  }

  /** Another worker has died that served for so long. */
  countDeath(servedMs: number): void {
    this.earlyDeaths = servedMs < HEALTHY_AFTER_MS ? this.earlyDeaths + 1 : 0;
  }

  /** A pod that serves although the cluster counts it as ready, and this controller has not reached it yet. */
  get isUnsettled(): boolean {
    return this.workers.some(
      (replica) => replica.state === "initializing" && replica.trouble === undefined && this.isReady(replica),
    );
  }

  /** How many pods more than wanted there should be, and which may go first. */
  get wear(): { extra: number; leavers: PodReplica[] } {
    const fresh = this.workers.filter((replica) => this.isNew(replica));
    const serving = fresh.filter(({ state }) => state === "ready");
    const worn = serving.filter(({ wear }) => wear === "worn");
    const { extra, retire } = planWear({
      wanted: this.wanted * this.perReplica,
      serving: serving.filter((replica) => this.isReady(replica)).length,
      wearing: serving.filter(({ wear }) => wear === "wearing").length,
      worn: worn.length,
      leaving: fresh.filter(({ state }) => state === "draining").length,
    });
    const marked = worn.filter(({ isFirstToGo }) => isFirstToGo);
    const others = worn.filter(({ isFirstToGo }) => !isFirstToGo);
    return { extra, leavers: [...marked, ...others].slice(0, retire) };
  }

  /** Some of its pods are to be replaced because of their use or age, or were, and the pod more is still there. */
  get isWearing(): boolean {
    return this.extra > 0 || this.workers.some(({ wear, state }) => wear !== "fresh" && state !== "gone");
  }

  /** What others see of it, as text to compare. */
  get face(): string {
    const workers = this.workers.map(
      (replica) => `${replica.pod.name} ${replica.state} ${this.isReady(replica)}`,
    );
    return [...workers, this.failure ?? "", this.lack ?? ""].join("\n");
  }

  /** Says again why the newest version does not serve. */
  judge(): void {
    const fresh = this.workers.filter((replica) => this.isNew(replica) && replica.state !== "draining");
    const judged = fresh.flatMap(({ pod, state, trouble, unprepared }) => {
      const seen = this.pods.get(pod.name);
      if (seen === undefined) return [];
      return [{ state: podState(seen), isServing: state === "ready", trouble, unprepared }];
    });
    const { failure, lack } = judgePods(judged, this.refused);
    this.failure = failure?.message ?? this.notApplied;
    this.failureKind = failure?.kind ?? "other";
    this.lack = this.failure === undefined ? lack : undefined;
  }

  /** For the cluster, which asks once a second: some time after its worker has said so. */
  private isReady({ pod }: PodReplica): boolean {
    const seen = this.pods.get(pod.name);
    return seen !== undefined && podState(seen).phase === "ready";
  }

  private isNew({ predictor_id }: PodReplica): boolean {
    return predictor_id === this.version.predictor_id;
  }
}
