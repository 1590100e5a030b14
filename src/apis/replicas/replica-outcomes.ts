/** What follows if a replica becomes ready, cannot be set up, or ends: for its group, for the log, for the routes. */

import { contain, inBackground } from "../../base/boundary.ts";
import type { Log } from "../../base/log.ts";
import type { WorkerExit } from "../../engine/engine.ts";
import { START_TIMEOUT } from "../../engine/lifetime.ts";
import { describeExit, TEMPORARY_FAILURE } from "../../engine/worker-exit.ts";
import type { WorkerFault } from "../../protocol/messages.ts";
import { describeFault } from "../../protocol/read-fault.ts";
import type { FailureKind, ReplicasOwner } from "../serving/api-replicas.ts";
import type { ReconcileLoop } from "./reconcile-loop.ts";
import type { Replica, ReplicaEvents } from "./replica.ts";
import { HEALTHY_AFTER_MS, type ReplicaGroup } from "./replica-group.ts";
import type { ReplicaGroups } from "./replica-groups.ts";

/** So many deaths in a row are no coincidence. */
const DEATHS_IN_START = 2;

export interface ReplicaOutcomesDeps {
  log: Log;
  forget: (workerId: string) => Promise<void>;
  /** Writes a line of the server to the API's log. */
  apiLog: (name: string, line: string) => void;
  /** Records that a replica that served ended unexpectedly, and how. */
  noteEnd: (name: string, how: string) => Promise<void>;
}

const NO_OWNER: ReplicasOwner = { replicasChanged() {}, deletedGone() {} };

export class ReplicaOutcomes {
  private readonly deps: ReplicaOutcomesDeps;
  private readonly groups: ReplicaGroups;
  private readonly loop: ReconcileLoop;
  private readonly restartCounts = new Map<string, number>();
  private owner: ReplicasOwner = NO_OWNER;

  constructor(deps: ReplicaOutcomesDeps, groups: ReplicaGroups, loop: ReconcileLoop) {
    this.deps = deps;
    this.groups = groups;
    this.loop = loop;
  }

  /** Sets the receiver of events. */
  serve(owner: ReplicasOwner): void {
    this.owner = owner;
  }

  /** How many of an API's serving workers ended unexpectedly since this controller started. */
  restarts(name: string): number {
    return this.restartCounts.get(name) ?? 0;
  }

  /** The set of replicas, or the number that should serve, has changed. */
  changed(): void {
    if (this.loop.isStopped) return;
    this.owner.replicasChanged();
    this.loop.soon();
  }

  /** Runs work for one API. If it throws, this API has failed, and is retried with growing pauses. */
  contain(name: string, work: () => unknown): void {
    contain(`replicas of API ${name}`, work, (error) => this.faulty(name, error));
  }

  /** An unexpected exception of one API. */
  faulty(name: string, error: Error): void {
    this.deps.log.error(
      { event: "reconcile_failed", err: error, api: name },
      "an API could not be reconciled",
    );
    const group = this.groups.get(name);
    if (group !== undefined && !this.loop.isStopped) this.failed(group, error.message);
  }

  /** The events of a worker that was started for this group, with this predictor. */
  eventsOf(group: ReplicaGroup, predictorId: string): ReplicaEvents {
    const { name, predictor_id } = group.version;
    return {
      onReady: () => {
        group.failure = undefined;
        group.deathsInStart = 0;
        if (predictorId === predictor_id) group.hasServed = true;
        this.changed();
      },
      onFailed: (failed, fault) => this.notSetUp(group, failed, fault),
      onLongStart: (replica, seconds) => this.tell(replica, `has been starting for ${seconds} s`),
      onWear: (replica) => {
        if (replica.wear === "worn")
          this.tell(replica, "has reached max_requests or max_age, and is replaced");
        this.changed();
      },
      onGone: (gone, exit, wasServing) => this.gone(gone, exit, wasServing),
      onFault: (error) => this.faulty(name, error),
    };
  }

  /** The group's newest version has no replica, and is retried with growing pauses. */
  failed(group: ReplicaGroup, message: string, kind: FailureKind = "other"): void {
    group.failure = message;
    group.failureKind = kind;
    group.failedForMemory = false;
    const waitMs = group.nextBackoffMs;
    this.deps.log.warn(
      { event: "replica_not_set_up", api: group.version.name, retry_in_ms: waitMs, message },
      "a replica could not be set up",
    );
    this.waitBeforeNext(group, waitMs);
    this.owner.replicasChanged();
  }

  private notSetUp(group: ReplicaGroup, replica: Replica, fault: WorkerFault): void {
    // Otherwise the log of the API has the traceback.
    if (fault.traceback === "") this.tell(replica, `could not be set up: ${describeFault(fault)}`);
    this.failed(group, describeFault(fault), fault.type === START_TIMEOUT ? "timeout" : "init");
  }

  private tell({ api_name, identity }: Replica, what: string): void {
    this.deps.apiLog(api_name, `replica ${identity.worker_id} ${what}`);
  }

  private gone(replica: Replica, exit: WorkerExit, wasServing: boolean): void {
    const group = this.groups.get(replica.api_name);
    contain(`a replica of ${replica.api_name}`, async () => {
      await this.deps.forget(replica.identity.worker_id);
      if (group === undefined) this.owner.deletedGone(replica.api_name);
    });
    if (group === undefined) return;
    group.workers = group.workers.filter((other) => other !== replica);
    if (wasServing) this.restartCounts.set(replica.api_name, this.restarts(replica.api_name) + 1);
    const livedMs = performance.now() - replica.startedMs;
    if (livedMs > HEALTHY_AFTER_MS) group.backoffMs = 0;
    else if (wasServing) this.waitBeforeNext(group, group.backoffMs);
    if (exit.outOfMemory !== undefined) {
      group.failure = `a replica ${describeExit(exit)}`;
      group.failureKind = "memory";
      group.failedForMemory = true;
    }
    if (!replica.isLeaving) {
      group.lastExit = describeExit(exit);
      this.logEnd(replica, exit);
      if (wasServing && !this.loop.isStopped)
        inBackground(this.deps.noteEnd(replica.api_name, group.lastExit));
    }
    this.countDeathInStart(group, replica, exit);
    this.changed();
  }

  /** After the first one, the next replica starts at once: the machine may have killed it. */
  private countDeathInStart(
    group: ReplicaGroup,
    { hasServed, isLeaving, hasFailed }: Replica,
    exit: WorkerExit,
  ): void {
    const isCounted = !hasServed && !isLeaving && !hasFailed && exit.outOfMemory === undefined;
    if (!isCounted || exit.code === TEMPORARY_FAILURE) return;
    if (++group.deathsInStart < DEATHS_IN_START) return;
    this.failed(group, `a replica ${describeExit(exit)} before it was ready`, "death");
  }

  private logEnd({ identity, api_name: api }: Replica, exit: WorkerExit): void {
    if (this.loop.isStopped) return;
    const { worker_id } = identity;
    this.deps.log.warn({ event: "replica_gone", api, worker: worker_id, ...exit }, "a replica is gone");
    this.deps.apiLog(api, `replica ${worker_id} ${describeExit(exit)}`);
  }

  private waitBeforeNext(group: ReplicaGroup, waitMs: number): void {
    group.waitBeforeNext(waitMs);
    this.loop.after(waitMs + 1);
  }
}
