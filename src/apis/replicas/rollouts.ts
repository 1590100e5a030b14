/** Follows `planRollout` for one API at a time: starts workers, retires them, and passes their compute on. */
import { type Fleet, type Plan, planRollout } from "./plan-rollout.ts";
import type { ReconcileLoop } from "./reconcile-loop.ts";
import type { Replica } from "./replica.ts";
import { inOrderOfLeaving, type ReplicaGroup } from "./replica-group.ts";
import type { ReplicaLifecycle } from "./replica-lifecycle.ts";
import type { ReplicaOutcomes } from "./replica-outcomes.ts";
import { finishMsOf } from "./start-worker.ts";

export interface RolloutsDeps {
  /** Writes a line of the server to the API's log. */
  apiLog: (name: string, line: string) => void;
}

interface RolloutsParts {
  loop: ReconcileLoop;
  lifecycle: ReplicaLifecycle;
  outcomes: ReplicaOutcomes;
}

export class Rollouts {
  private readonly deps: RolloutsDeps;
  private readonly parts: RolloutsParts;

  constructor(deps: RolloutsDeps, parts: RolloutsParts) {
    this.deps = deps;
    this.parts = parts;
  }

  reconcile(group: ReplicaGroup): void {
    const { loop, lifecycle, outcomes } = this.parts;
    // Remove workers whose end was not handled.
    group.workers = group.workers.filter(({ state }) => state !== "gone");
    const fleet = group.fleet(performance.now());
    const plan = planRollout(fleet);
    const { places, oldInOrder } = group;
    if (plan.borrows) places.borrow(oldInOrder);
    for (let i = 0; i < plan.start; i++) outcomes.contain(group.version.name, () => lifecycle.start(group));
    const leaving = known(oldInOrder.slice(0, plan.retireOld));
    const retired = known(inOrderOfLeaving(group.fresh).slice(0, plan.retireFresh));
    if (plan.handsOver) places.handOver(leaving);
    places.keepOnly(plan.keep);
    places.waitFor(plan.waitFor);
    this.noteLack(group, isMoving(fleet, plan) ? 0 : plan.waitFor);
    if (fleet.fresh.ready + fleet.fresh.coming + plan.start < fleet.wanted) loop.pollCapacity();
    lifecycle.retire(retired);
    // A successor waits for their compute, and requests for the successor.
    lifecycle.retire(leaving, plan.handsOver ? finishMsOf(group.version) : undefined);
  }

  /** Records what missing replicas wait for, and logs it once in the API's log. */
  private noteLack(group: ReplicaGroup, workers: number): void {
    const wasLacking = group.lack !== undefined;
    group.lack = workers > 0 ? group.places.describe() : undefined;
    if (group.lack === undefined) group.hasToldOfLack = false;
    // A lack that may be over a moment later is not logged.
    if (group.lack === undefined || !wasLacking || group.hasToldOfLack) return;
    group.hasToldOfLack = true;
    const replicas = Math.ceil(workers / group.perReplica);
    this.deps.apiLog(
      group.version.name,
      `${replicas} of ${group.wanted} replicas wait for compute: ${group.lack}`,
    );
  }
}

/** While workers start or leave, missing replicas are not a lack yet. */
function isMoving({ fresh, leaving }: Fleet, { start, handsOver }: Plan): boolean {
  return fresh.coming + start + leaving > 0 || handsOver;
}

/** Those that may be retired: an adopted one may turn out to drain already, and then it is the other one that serves. */
function known(replicas: readonly Replica[]): Replica[] {
  return replicas.filter(({ isUnknown }) => !isUnknown);
}
