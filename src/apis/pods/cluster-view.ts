/**
 * Follows the pods and Deployments of APIs in the cluster, and keeps a replica for each pod: it begins when the pod has
 * an address, and ends with it.
 */
import { inBackground } from "../../base/boundary.ts";
import { wallMs } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { every } from "../../base/loop/pulse.ts";
import { LAUNCHER_POLL_MS, PODS_SETTLE_MS } from "../../contracts/limits/kubernetes/pods.ts";
import type { Lifetime } from "../../engine/lifetime.ts";
import type { ApiClient } from "../../kubernetes/api-client.ts";
import { restartTrouble } from "../../kubernetes/container-trouble.ts";
import { ListAndWatch } from "../../kubernetes/list-and-watch.ts";
import {
  API_SELECTOR,
  apiOf,
  EXTRA_ANNOTATION,
  objectName,
  VERSION_ANNOTATION,
  workerHost,
} from "../../kubernetes/objects/names.ts";
import { WORKER_PORT } from "../../kubernetes/objects/worker-pods.ts";
import type { Pod } from "../../kubernetes/pod.ts";
import { type PodState, podState } from "../../kubernetes/pod-state.ts";
import type { PodTrouble } from "../../kubernetes/pod-trouble.ts";
import type { WorkerAuthority } from "../../kubernetes/pods/authority.ts";
import { type KubernetesObject, pathOf } from "../../kubernetes/resources.ts";
import type { Init } from "../../protocol/messages.ts";
import type { ApiVersion } from "../records/api-rows.ts";
import { askLaunchers } from "./ask-launchers.ts";
import type { GroupBefore, PodGroup } from "./pod-group.ts";
import { PodReplica, type PodReplicaEvents } from "./pod-replica.ts";

export interface ClusterViewDeps {
  client: ApiClient;
  namespace: string;
  log: Log;
  epoch: number;
  authority: WorkerAuthority;
  /** The INIT of a version by its predictor's id; undefined if it is gone. */
  initOf: (name: string, predictorId: string) => Promise<Init | undefined>;
  lifetimeOf: (version: ApiVersion) => Lifetime;
}

interface ClusterViewOwner {
  changed: () => void;
  group: (name: string) => PodGroup | undefined;
  groups: () => Iterable<PodGroup>;
  eventsOf: (name: string) => PodReplicaEvents;
  /** A pod's state, whenever it changes. */
  told: (name: string, pod: string, state: PodState) => void;
  /** A container of the pod began again: why it ended. */
  restarted: (name: string, replica: PodReplica, trouble: PodTrouble) => void;
  /** A pod's launcher has answered, while no worker listens there: why not is in the replica. */
  unprepared: (name: string, replica: PodReplica) => void;
  deploymentChanged: (name: string, generation: number | undefined) => void;
  listed: () => void;
}

export interface Deployment extends KubernetesObject {
  spec?: { replicas?: number };
  status?: { conditions?: readonly { type: string; status: string; message?: string }[] };
}

export class ClusterView {
  private readonly deps: ClusterViewDeps;
  private readonly owner: ClusterViewOwner;
  private readonly pods: ListAndWatch<Pod>;
  private readonly deployments: ListAndWatch<Deployment>;
  private listedMs: number | undefined;
  private readonly failing = new Set<string>();
  private stopPolling = () => {};

  constructor(deps: ClusterViewDeps, owner: ClusterViewOwner) {
    this.deps = deps;
    this.owner = owner;
    const { client, namespace } = deps;
    const watched = { client, labelSelector: API_SELECTOR };
    this.pods = new ListAndWatch<Pod>({
      ...watched,
      path: pathOf("Pod", namespace),
      onChange: (name, pod) => {
        this.failing.delete("pods");
        this.podChanged(name, pod);
      },
      onFailure: (error) => this.tellFailure("pods", error),
    });
    this.deployments = new ListAndWatch<Deployment>({
      ...watched,
      path: pathOf("Deployment", namespace),
      onChange: (name, deployment) => {
        this.failing.delete("deployments");
        this.deploymentChanged(name, deployment);
      },
      onFailure: (error) => this.tellFailure("deployments", error),
    });
  }

  async start(): Promise<void> {
    await Promise.all([this.pods.start(), this.deployments.start()]);
    inBackground(this.whenListed());
    this.stopPolling = every(LAUNCHER_POLL_MS, "the launchers of pods", () =>
      askLaunchers(this.owner.groups(), (group, replica, before) => {
        this.owner.unprepared(group.version.name, replica);
        this.judge(group, before);
      }),
    );
  }

  async stop(): Promise<void> {
    this.stopPolling();
    await Promise.all([this.pods.stop(), this.deployments.stop()]);
  }

  /** Whether it is known which objects there are. */
  get isListed(): boolean {
    return this.listedMs !== undefined;
  }

  /** It is too early to say that a pod does not serve. */
  get isSettling(): boolean {
    return this.listedMs === undefined || performance.now() - this.listedMs < PODS_SETTLE_MS;
  }

  /** The APIs that have a Deployment. */
  get deployed(): string[] {
    return [...this.deployments.view.values()].map(({ metadata }) => apiOf(metadata.labels)!);
  }

  /** The replica count that a former controller left in the cluster. */
  wantedBefore({ name, config }: ApiVersion): GroupBefore | undefined {
    const found = [...this.deployments.view.values()].find(({ metadata }) => apiOf(metadata.labels) === name);
    const pods = found && wantedPods(found);
    if (pods === undefined) return undefined;
    const wanted = Math.ceil(pods / config.predictor.processes_per_replica);
    return { wanted, wantedBecause: "the replica count when the controller started" };
  }

  /** The API has a group now: its pods may be there already. */
  adopt(api: string): void {
    for (const [name, pod] of this.pods.view)
      if (apiOf(pod.metadata.labels) === api) this.podChanged(name, pod);
    for (const deployment of this.deployments.view.values())
      if (apiOf(deployment.metadata.labels) === api)
        this.deploymentChanged(deployment.metadata.name, deployment);
  }

  /** `graceSeconds`: instead of the pod's own time. */
  removePod({ pod }: PodReplica, graceSeconds?: number): void {
    const { client, namespace, log } = this.deps;
    inBackground(client.remove(pathOf("Pod", namespace, pod.name), pod.uid, graceSeconds), (error) =>
      log.warn({ event: "cluster_failed", err: error }, `pod ${pod.name} could not be removed`),
    );
  }

  private async whenListed(): Promise<void> {
    await Promise.all([this.pods.listed, this.deployments.listed]);
    this.listedMs = performance.now();
    this.owner.listed();
    // Routes that were kept until now are published as they are.
    setTimeout(() => this.owner.changed(), PODS_SETTLE_MS).unref();
  }

  private podChanged(name: string, pod: Pod | undefined): void {
    if (pod === undefined) return this.podGone(name);
    const api = apiOf(pod.metadata.labels);
    const group = api === undefined ? undefined : this.owner.group(api);
    if (group === undefined) return;
    const before = group.face;
    const state = podState(pod);
    const former = group.pods.get(name);
    group.pods.set(name, pod);
    let replica = group.replicas.get(name);
    // A pod of this name that was made again.
    if (replica !== undefined && replica.pod.uid !== pod.metadata.uid) replica.end();
    if (replica === undefined || replica.state === "gone") {
      replica = this.replicaOf(group, pod);
      group.replicas.set(name, replica);
    }
    if (state.phase === "leaving" || state.phase === "lost") replica.leave();
    else if (state.phase === "failed" || state.phase === "succeeded") replica.end();
    else if (pod.status?.podIP !== undefined) replica.follow(pod.status.podIP);
    this.owner.told(api!, name, state);
    const restart = former === undefined ? undefined : restartTrouble(former, pod);
    if (restart !== undefined) this.owner.restarted(api!, replica, restart);
    this.judge(group, before);
  }

  private podGone(name: string): void {
    for (const group of this.owner.groups()) {
      const replica = group.replicas.get(name);
      if (replica === undefined) continue;
      const before = group.face;
      replica.end();
      group.replicas.delete(name);
      group.pods.delete(name);
      this.judge(group, before);
    }
  }

  /** Pods change often in what nobody sees. */
  private judge(group: PodGroup, before: string): void {
    group.judge();
    if (group.face !== before) this.owner.changed();
  }

  private replicaOf({ version }: PodGroup, { metadata }: Pod): PodReplica {
    const { authority, namespace, epoch, initOf, lifetimeOf } = this.deps;
    const { name } = version;
    const predictor_id = metadata.annotations?.[VERSION_ANNOTATION] ?? "";
    const ageMs = wallMs() - Date.parse(metadata.creationTimestamp ?? new Date(wallMs()).toISOString());
    return new PodReplica(
      {
        ...{ name: metadata.name, uid: metadata.uid ?? "", predictor_id, port: WORKER_PORT },
        ...{ token: authority.tokenOf(name), ca: authority.ca, serverName: workerHost(name, namespace) },
        startedMs: performance.now() - ageMs,
      },
      { init: () => initOf(name, predictor_id), epoch, lifetime: lifetimeOf(version) },
      this.owner.eventsOf(name),
    );
  }

  /** One that somebody has changed or removed is applied again. */
  private deploymentChanged(name: string, deployment: Deployment | undefined): void {
    const group = [...this.owner.groups()].find(({ version }) => objectName(version.name) === name);
    if (group === undefined) return;
    const before = group.face;
    const failure = deployment?.status?.conditions?.find(({ type }) => type === "ReplicaFailure");
    group.refused = failure?.status === "True" ? failure.message : undefined;
    this.judge(group, before);
    this.owner.deploymentChanged(group.version.name, deployment?.metadata.generation);
  }

  /** Once, until it works again. */
  private tellFailure(what: string, error: Error): void {
    if (this.failing.has(what)) return;
    this.failing.add(what);
    this.deps.log.warn(
      { event: "cluster_failed", err: error },
      `the ${what} of the cluster cannot be followed; tried again, and gateways use the last routes`,
    );
  }
}

/** How many pods a Deployment should have, without those that are only there until they have replaced others. Pure. */
export function wantedPods({ metadata, spec }: Deployment): number | undefined {
  if (spec?.replicas === undefined) return undefined;
  return Math.max(0, spec.replicas - (Number(metadata.annotations?.[EXTRA_ANNOTATION]) || 0));
}
