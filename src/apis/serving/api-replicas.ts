/**
 * What others see of the replicas of real-time APIs, wherever they run: processes of this machine (replicas.ts), or pods
 * of a cluster (apis/pods).
 */
import type { Service } from "../../base/service.ts";
import type { ReplicaAddress } from "../../contracts/routes.ts";
import type { WorkerIdentity } from "../../engine/engine.ts";
import type { ApiVersion } from "../records/api-rows.ts";

/** What failed: the installation, `startup_timeout`, the memory, `__init__`, the process, or something else. */
export type FailureKind = "requirements" | "timeout" | "memory" | "init" | "death" | "other";

/** Receives the events of replicas. */
export interface ReplicasOwner {
  /** The set of serving replicas has changed. */
  replicasChanged(): void;
  /** A worker of a deleted API is gone. */
  deletedGone(name: string): void;
}

/** One worker. */
export interface ServingReplica {
  readonly identity: WorkerIdentity;
  /** Where it is, if it is not a process of this machine. */
  readonly address?: ReplicaAddress | undefined;
  readonly predictor_id: string;
  readonly state: "initializing" | "ready" | "draining" | "gone";
  readonly wants: readonly string[];
  readonly isAsync: boolean;
  /** A former controller has started it, and it has not said yet whether it serves. */
  readonly isUnknown: boolean;
  /** When it started, on the clock of `performance.now()`. */
  readonly startedMs: number;
}

/** The workers of one API: how many are wanted, which exist, and why some are missing. */
export interface ServedApi {
  readonly version: ApiVersion;
  /** The wanted replicas, each of `perReplica` workers. */
  readonly wanted: number;
  /** The reason for this number. */
  readonly wantedBecause: string;
  readonly perReplica: number;
  readonly workers: readonly ServingReplica[];
  /** Workers of all versions that serve. */
  readonly serving: readonly ServingReplica[];
  /** Complete replicas of the newest version that serve. */
  readonly upToDate: number;
  /** Why the newest version has no replica. */
  readonly failure: string | undefined;
  readonly failureKind: FailureKind;
  readonly failedForMemory: boolean;
  /** How the last replica ended that was not asked to. */
  readonly lastExit: string | undefined;
  /** What the missing replicas wait for. */
  readonly lack: string | undefined;
}

export interface ApiReplicas extends Service {
  /** Sets the receiver of events. */
  serve(owner: ReplicasOwner): void;
  /** The APIs that have replicas, or should have some. */
  readonly names: string[];
  group(name: string): ServedApi | undefined;
  /**
   * It is not known yet which replicas serve, because this controller has just started: the last route stays. Processes
   * of this machine are known at once.
   */
  isUnsettled?(name: string): boolean;
  /** How many of an API's serving workers ended unexpectedly since this controller started. */
  restarts(name: string): number;
  /** Whether an API's replicas keep dying soon after they became ready. */
  isCrashing(name: string): boolean;
  /** Sets the wanted replica count. */
  setWanted(name: string, replicas: number, because: string): void;
  /** Compares the wanted state with the actual one. */
  reconcile(): Promise<void>;
  /** Ends workers of former rollouts that are still starting. */
  cancelFormerRollouts(names: readonly string[]): Promise<void>;
  /** Kills a worker, because a gateway found a request past its deadline there. */
  kill(workerId: string): void;
  /** The same for a worker that also runs other requests: those get time to finish. */
  replace(workerId: string): void;
  /** The server stops for good: replicas that nobody would serve finish their requests. */
  drainAll(graceMs: number): Promise<void>;
}
