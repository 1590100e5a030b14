/**
 * Adopts the replicas that a former controller started. Workers of an API that cannot be read now continue to serve by
 * its last good route. They are adopted once it can be read.
 */
import type { WorkerRecord } from "../../database/worker-rows.ts";
import type { RunningWorker } from "../../engine/engine.ts";
import type { ApiVersion } from "../records/api-rows.ts";
import type { ReplicaGroups } from "./replica-groups.ts";
import type { ReplicaLifecycle } from "./replica-lifecycle.ts";
import type { ReplicaOutcomes } from "./replica-outcomes.ts";

export interface AdoptionDeps {
  /** Adopts a worker that a former controller started; undefined if it is gone. */
  adopt: (version: ApiVersion, record: WorkerRecord) => RunningWorker | undefined;
  /** Ends a worker of an API that no longer exists. */
  end: (record: WorkerRecord) => void;
  forget: (workerId: string) => Promise<void>;
}

interface AdoptionParts {
  groups: ReplicaGroups;
  lifecycle: ReplicaLifecycle;
  outcomes: ReplicaOutcomes;
}

export class Adoption {
  private readonly deps: AdoptionDeps;
  private readonly parts: AdoptionParts;
  /** Workers that are not adopted yet. */
  private orphans: readonly WorkerRecord[];

  /** `orphans` are the replicas that a former controller started. */
  constructor(deps: AdoptionDeps, parts: AdoptionParts, orphans: readonly WorkerRecord[]) {
    this.deps = deps;
    this.parts = parts;
    this.orphans = orphans;
  }

  /** Adopts the workers whose API can be read. */
  async adoptReadable(): Promise<void> {
    const { groups, outcomes } = this.parts;
    const isLeft = ({ api_name }: WorkerRecord) => groups.isUnreadable(api_name);
    const ready = this.orphans.filter((record) => !isLeft(record));
    this.orphans = this.orphans.filter(isLeft);
    for (const record of ready)
      await this.adopt(record).catch((error: Error) => outcomes.faulty(record.api_name, error));
  }

  private async adopt(record: WorkerRecord): Promise<void> {
    const { groups, lifecycle } = this.parts;
    const group = groups.get(record.api_name);
    const worker = group && this.deps.adopt(group.version, record);
    if (group === undefined) this.deps.end(record);
    if (group === undefined || worker === undefined) return this.deps.forget(record.worker_id);
    const reservation = group.places.takeAgain(record.gpus.split(",").filter(Boolean));
    lifecycle.add(group, worker, { predictor_id: record.predictor_id, reservation, isAdopted: true });
  }
}
