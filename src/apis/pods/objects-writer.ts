/**
 * Applies the objects of APIs to the cluster, and removes those of APIs that are gone. It writes only what has changed:
 * in what it applied last, or by somebody else.
 */
import type { ApiClient } from "../../kubernetes/api-client.ts";
import { ApiError } from "../../kubernetes/api-error.ts";
import {
  API_KINDS,
  apiObjects,
  type WorkerNetwork,
  workersPolicy,
} from "../../kubernetes/objects/api-objects.ts";
import { API_SELECTOR, apiOf, objectName } from "../../kubernetes/objects/names.ts";
import type { AppliedObject } from "../../kubernetes/objects/worker-objects.ts";
import type { WorkerPods } from "../../kubernetes/objects/worker-pods.ts";
import type { WorkerAuthority } from "../../kubernetes/pods/authority.ts";
import { type KubernetesObject, pathOf } from "../../kubernetes/resources.ts";

const GOES_FIRST = { "controller.kubernetes.io/pod-deletion-cost": "-1000" };

export class ObjectsWriter {
  private readonly client: ApiClient;
  private readonly authority: WorkerAuthority;
  /** What was applied last, as text. */
  private readonly applied = new Map<string, string>();
  private hasPolicy = false;
  /** The Deployment's generation then. */
  private readonly generations = new Map<string, number>();

  constructor(client: ApiClient, authority: WorkerAuthority) {
    this.client = client;
    this.authority = authority;
  }

  /** Resolves when all are as they should be. */
  async apply(pods: WorkerPods, now: Date): Promise<void> {
    const secret = await this.authority.secretOf(pods.api, now);
    const objects = apiObjects(pods, secret);
    const text = JSON.stringify(objects);
    if (this.applied.get(pods.api) === text) return;
    for (const object of objects) {
      const { generation } = (await this.put(object)).metadata;
      if (object.kind === "Deployment") this.generations.set(pods.api, generation ?? 0);
    }
    this.applied.set(pods.api, text);
  }

  /** The ReplicaSet takes this pod when it takes one that is ready. */
  async goesFirst(namespace: string, { name, uid }: { name: string; uid: string }): Promise<void> {
    const change = { metadata: { uid, annotations: GOES_FIRST } };
    await this.client.merge(pathOf("Pod", namespace, name), change).catch((error: unknown) => {
      const isGone = error instanceof ApiError && (error.status === 404 || error.status === 409);
      if (!isGone) throw error;
    });
  }

  /** Once. */
  async applyPolicy(network: WorkerNetwork): Promise<undefined> {
    if (!this.hasPolicy) await this.put(workersPolicy(network));
    this.hasPolicy = true;
  }

  /** The Deployment of an API is this one now, or is gone. True if somebody else has changed it. */
  isForeign(api: string, generation: number | undefined): boolean {
    const known = this.generations.get(api);
    if (known === undefined || (generation !== undefined && generation <= known)) return false;
    this.applied.delete(api);
    this.generations.delete(api);
    return true;
  }

  async remove(api: string, namespace: string): Promise<void> {
    for (const kind of [...API_KINDS].reverse())
      await this.client.remove(pathOf(kind, namespace, objectName(api)));
    this.applied.delete(api);
    this.generations.delete(api);
    this.authority.forget(api);
  }

  /** The APIs that have any object in the cluster. */
  async found(namespace: string): Promise<Set<string>> {
    const apis = new Set<string>();
    for (const kind of API_KINDS) {
      const query = { labelSelector: API_SELECTOR };
      const { items } = await this.client.get<{ items: KubernetesObject[] }>(pathOf(kind, namespace), query);
      for (const { metadata } of items) apis.add(apiOf(metadata.labels)!);
    }
    return apis;
  }

  private put(object: AppliedObject): Promise<KubernetesObject> {
    const { kind, metadata } = object;
    return this.client.apply<KubernetesObject>(pathOf(kind, metadata.namespace, metadata.name), object);
  }
}
