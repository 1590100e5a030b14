/** Brings the objects of all APIs in the cluster to what is deployed, and removes those of others. */
import { wallMs } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { ApiClient } from "../../kubernetes/api-client.ts";
import { ApiError } from "../../kubernetes/api-error.ts";
import type { WorkerNetwork } from "../../kubernetes/objects/api-objects.ts";
import type { WorkerPods } from "../../kubernetes/objects/worker-pods.ts";
import type { WorkerAuthority } from "../../kubernetes/pods/authority.ts";
import type { ApiVersion } from "../records/api-rows.ts";
import { ObjectsWriter } from "./objects-writer.ts";
import { EXTRA_MAX } from "./plan-wear.ts";
import type { PodGroup } from "./pod-group.ts";
import type { PodReplica } from "./pod-replica.ts";

export interface ApiObjectsDeps {
  client: ApiClient;
  authority: WorkerAuthority;
  namespace: string;
  log: Log;
  /** Writes a line of the server to the API's log. */
  apiLog: (name: string, line: string) => void;
  /** `extra`: so many pods more, until they have replaced others. */
  podsOf: (version: ApiVersion, replicas: number, extra: number) => WorkerPods;
  network: WorkerNetwork;
}

interface ApiObjectsOwner {
  /** An API's objects are as they should be, or could not be applied. */
  applied: (name: string, error: Error | undefined) => void;
  removed: (name: string) => void;
}

export class ApiObjects {
  private readonly deps: ApiObjectsDeps;
  private readonly owner: ApiObjectsOwner;
  private readonly writer: ObjectsWriter;
  /** What former controllers left was looked for. */
  private hasCollected = false;
  /** The APIs whose log has that it cannot be said which of their pods goes. */
  private readonly unmarked = new Set<string>();

  constructor(deps: ApiObjectsDeps, owner: ApiObjectsOwner) {
    this.deps = deps;
    this.owner = owner;
    this.writer = new ObjectsWriter(deps.client, deps.authority);
  }

  /**
   * `kept`: the APIs whose objects stay. `deployed`: those that have a Deployment. Resolves to false if something has to
   * be tried again.
   */
  async bring(
    groups: Iterable<PodGroup>,
    kept: ReadonlySet<string>,
    deployed: readonly string[],
  ): Promise<boolean> {
    const work = [this.applyPolicy(), ...[...groups].map((group) => this.apply(group))];
    const applied = await Promise.all(work);
    return (await this.removeOthers(kept, deployed)) && applied.every(Boolean);
  }

  /** Whether somebody else has changed the Deployment of an API, or removed it. */
  isForeign(api: string, generation: number | undefined): boolean {
    return this.writer.isForeign(api, generation);
  }

  private async applyPolicy(): Promise<boolean> {
    try {
      await this.writer.applyPolicy(this.deps.network);
      return true;
    } catch (err) {
      this.deps.log.warn(
        { event: "cluster_failed", err },
        "the NetworkPolicy of workers could not be applied",
      );
      return false;
    }
  }

  private async apply(group: PodGroup): Promise<boolean> {
    const { version, wanted, wear } = group;
    try {
      const isMarked = await this.mark(version.name, wear.leavers);
      // Otherwise the cluster might take a successor, again and again.
      const extra = isMarked ? wear.extra : Math.min(EXTRA_MAX, wear.extra + wear.leavers.length);
      group.extra = extra;
      await this.writer.apply(this.deps.podsOf(version, wanted, extra), new Date(wallMs()));
      this.owner.applied(version.name, undefined);
      return isMarked;
    } catch (error) {
      this.owner.applied(version.name, error as Error);
      return false;
    }
  }

  /** Says to the cluster that these pods go first. False if this server may not, as with the Role of an older release. */
  private async mark(name: string, leavers: readonly PodReplica[]): Promise<boolean> {
    try {
      for (const leaver of leavers.filter(({ isFirstToGo }) => !isFirstToGo)) {
        await this.writer.goesFirst(this.deps.namespace, leaver.pod);
        leaver.isFirstToGo = true;
      }
      this.unmarked.delete(name);
      return true;
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 403) throw error;
      this.tellUnmarked(name, error);
      return false;
    }
  }

  /** Once, until it works again. */
  private tellUnmarked(name: string, err: Error): void {
    if (this.unmarked.has(name)) return;
    this.unmarked.add(name);
    const what = "worn pods stay, because they cannot be annotated";
    this.deps.log.warn({ event: "cluster_failed", err, api: name }, what);
    this.deps.apiLog(name, `${what}: ${err.message}; apply the output of quern export kubernetes again`);
  }

  private async removeOthers(kept: ReadonlySet<string>, deployed: readonly string[]): Promise<boolean> {
    const { namespace, log } = this.deps;
    try {
      const found = this.hasCollected ? new Set(deployed) : await this.writer.found(namespace);
      for (const name of found) {
        if (kept.has(name)) continue;
        await this.writer.remove(name, namespace);
        log.info(
          { event: "api_objects_removed", api: name },
          `the objects of ${name} are removed from the cluster`,
        );
        this.owner.removed(name);
      }
      this.hasCollected = true;
      return true;
    } catch (err) {
      this.hasCollected = false;
      log.warn(
        { event: "cluster_failed", err },
        "objects could not be removed from the cluster; tried again",
      );
      return false;
    }
  }
}
