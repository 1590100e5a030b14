/**
 * Starts replicas, follows them until their process ends, and retires them. The reservation of a replica that is gone
 * stays with its API.
 */
import { contain } from "../../base/boundary.ts";
import type { ComputeAccount } from "../../engine/compute-account.ts";
import type { RunningWorker } from "../../engine/engine.ts";
import { EnvironmentError } from "../../engine/environments/environment-error.ts";
import type { Lifetime } from "../../engine/lifetime.ts";
import type { Reservation } from "../../engine/reservations.ts";
import type { Init } from "../../protocol/messages.ts";
import type { ApiVersion } from "../records/api-rows.ts";
import type { ReconcileLoop } from "./reconcile-loop.ts";
import { DRAIN_GRACE_MS, Replica } from "./replica.ts";
import type { ReplicaGroup } from "./replica-group.ts";
import type { ReplicaGroups } from "./replica-groups.ts";
import type { ReplicaOutcomes } from "./replica-outcomes.ts";

export interface ReplicaLifecycleDeps {
  epoch: number;
  account: ComputeAccount;
  start: (version: ApiVersion, gpus: readonly string[]) => Promise<RunningWorker>;
  initOf: (version: ApiVersion) => Init;
  lifetimeOf: (version: ApiVersion) => Lifetime;
}

interface LifecycleParts {
  groups: ReplicaGroups;
  loop: ReconcileLoop;
  outcomes: ReplicaOutcomes;
}

export class ReplicaLifecycle {
  private readonly deps: ReplicaLifecycleDeps;
  private readonly groups: ReplicaGroups;
  private readonly loop: ReconcileLoop;
  private readonly outcomes: ReplicaOutcomes;

  constructor(deps: ReplicaLifecycleDeps, { groups, loop, outcomes }: LifecycleParts) {
    this.deps = deps;
    this.groups = groups;
    this.loop = loop;
    this.outcomes = outcomes;
  }

  /** Starts a worker of the group's version, if there is compute for it. */
  async start(group: ReplicaGroup): Promise<void> {
    const { version, places } = group;
    const reservation = places.take();
    if (reservation === undefined) return this.loop.pollCapacity();
    group.starting++;
    try {
      const worker = await this.deps.start(version, reservation.gpus);
      this.add(group, worker, { predictor_id: version.predictor_id, reservation, isAdopted: false });
      // The API was deleted meanwhile, so this group is no longer reconciled.
      if (this.groups.get(version.name) === undefined) this.retire(group.workers);
    } catch (error) {
      this.vacate(version.name, reservation);
      const kind = error instanceof EnvironmentError ? "requirements" : "other";
      this.outcomes.failed(group, (error as Error).message, kind);
    } finally {
      group.starting--;
    }
    // The deployment may have changed while the worker was starting.
    this.loop.soon();
  }

  /** Follows a worker that runs, from now until its end. */
  add(
    group: ReplicaGroup,
    worker: RunningWorker,
    of: { predictor_id: string; reservation: Reservation; isAdopted: boolean },
  ): void {
    const { version } = group;
    const { name } = version;
    const replica = new Replica(
      worker,
      { api_name: name, lifetime: this.deps.lifetimeOf(version), ...of },
      this.outcomes.eventsOf(group, of.predictor_id),
    );
    (this.groups.get(name) ?? group).workers.push(replica);
    // This runs even if the replica's end cannot be handled.
    contain(`the place of a replica of ${name}`, async () => {
      await worker.exited;
      this.vacate(name, replica.reservation);
    });
    contain(
      `a replica of ${name}`,
      async () => {
        await replica.connect(this.deps.initOf(version), this.deps.epoch);
        if (replica.state === "draining") this.outcomes.changed();
      },
      (error) => {
        this.outcomes.faulty(name, error);
        replica.kill();
      },
    );
  }

  /** Lets workers finish the requests that they have, then end. */
  retire(workers: readonly Replica[], graceMs = DRAIN_GRACE_MS): void {
    const leaving = workers.filter((worker) => worker.state !== "draining");
    for (const worker of leaving) worker.drain(graceMs);
    // A draining worker no longer blocks a rollout, however long it takes.
    if (leaving.length > 0) this.outcomes.changed();
  }

  /** Keeps the reservation of a worker that is gone for its successor. A deleted API's reservation is given back. */
  private vacate(name: string, reservation: Reservation | undefined): void {
    if (reservation === undefined) return;
    const places = this.groups.get(name)?.places;
    if (places === undefined) this.deps.account.giveBack(reservation);
    else places.keep(reservation);
    this.loop.soon();
  }
}
