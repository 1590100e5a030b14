/** The replica groups of all real-time APIs, by name. They follow the deployed versions. */
import type { ComputeAccount } from "../../engine/compute-account.ts";
import { replicasOf } from "../../engine/scheduler/claims.ts";
import type { Compute } from "../../engine/scheduler/compute.ts";
import type { ApiVersion } from "../records/api-rows.ts";
import type { ReconcileLoop } from "./reconcile-loop.ts";
import type { Replica } from "./replica.ts";
import { ReplicaGroup } from "./replica-group.ts";
import { ReplicaPlaces } from "./replica-places.ts";

export interface ReplicaGroupsDeps {
  /** Includes the names of APIs that cannot be read now, whose replicas stay. */
  versions: () => Promise<{ versions: ApiVersion[]; unreadable: readonly string[] }>;
  account: ComputeAccount;
  /** The compute that one worker of this version reserves. */
  computeOf: (version: ApiVersion) => Compute;
}

/** What has changed since the last comparison. */
export interface DeployedChanges {
  /** The groups of APIs that are no longer deployed. */
  deleted: ReplicaGroup[];
  /** Versions that no group has yet. */
  changed: ApiVersion[];
}

export class ReplicaGroups {
  private readonly deps: ReplicaGroupsDeps;
  private readonly loop: ReconcileLoop;
  private readonly groups = new Map<string, ReplicaGroup>();
  private unreadable: readonly string[] = [];

  /** `loop` runs when compute that a group waits for is reserved. */
  constructor(deps: ReplicaGroupsDeps, loop: ReconcileLoop) {
    this.deps = deps;
    this.loop = loop;
  }

  /** The APIs that have replicas, or should have some. */
  get names(): string[] {
    return [...this.groups.keys()];
  }

  get all(): ReplicaGroup[] {
    return [...this.groups.values()];
  }

  get workers(): Replica[] {
    return this.all.flatMap((group) => group.workers);
  }

  get(name: string): ReplicaGroup | undefined {
    return this.groups.get(name);
  }

  /** The API's version cannot be read now. */
  isUnreadable(name: string): boolean {
    return this.unreadable.includes(name);
  }

  /** Reads the deployed versions, and removes the groups of deleted APIs. */
  async compare(): Promise<DeployedChanges> {
    const { versions, unreadable } = await this.deps.versions();
    this.unreadable = unreadable;
    const realtime = versions.filter(({ config }) => config.kind === "RealtimeAPI");
    const kept = new Set([...realtime.map(({ name }) => name), ...unreadable]);
    const deleted = this.all.filter(({ version }) => !kept.has(version.name));
    for (const { version } of deleted) this.groups.delete(version.name);
    return { deleted, changed: realtime.filter((version) => this.isNew(version)) };
  }

  /** Creates the group of a new version. It takes over the workers and places of the former one. */
  renew(version: ApiVersion): void {
    const { name } = version;
    const before = this.groups.get(name);
    const places = before?.places ?? this.placesOf(name);
    this.groups.set(name, new ReplicaGroup(version, places, before));
    places.fit(this.deps.computeOf(version), version.config.predictor.processes_per_replica);
  }

  private isNew({ name, api_id, predictor_id }: ApiVersion): boolean {
    const known = this.groups.get(name)?.version;
    return known?.api_id !== api_id || known.predictor_id !== predictor_id;
  }

  private placesOf(name: string): ReplicaPlaces {
    const onReserved = () => this.loop.soon();
    return new ReplicaPlaces({ account: this.deps.account, by: replicasOf(name), onReserved });
  }
}
