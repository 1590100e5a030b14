/** Writes the objects of jobs to the cluster, and removes them. */
import { wallMs } from "../../base/clock.ts";
import type { ApiClient } from "../../kubernetes/api-client.ts";
import { JOB_KINDS, jobObjects, jobParallelism } from "../../kubernetes/objects/job-objects.ts";
import { JOB_LABEL, JOB_SELECTOR, jobObjectName } from "../../kubernetes/objects/names.ts";
import type { JobPods } from "../../kubernetes/objects/worker-pods.ts";
import type { WorkerAuthority } from "../../kubernetes/pods/authority.ts";
import { type KubernetesObject, pathOf } from "../../kubernetes/resources.ts";

/** Owns the one field of a Job that changes. What a queue has changed in the others stays. */
const PARALLELISM = "parallelism";

export class JobPodsWriter {
  private readonly client: ApiClient;
  private readonly authority: WorkerAuthority;
  private readonly namespace: string;

  constructor(client: ApiClient, authority: WorkerAuthority, namespace: string) {
    this.client = client;
    this.authority = authority;
    this.namespace = namespace;
  }

  /** Resolves to the Job's uid. */
  async make(pods: JobPods): Promise<string | undefined> {
    let job: KubernetesObject | undefined;
    for (const object of jobObjects(pods, this.authority.jobSecretOf(pods.api, new Date(wallMs())))) {
      const { kind, metadata } = object;
      job = await this.client.apply<KubernetesObject>(
        pathOf(kind, metadata.namespace, metadata.name),
        object,
      );
    }
    return job?.metadata.uid;
  }

  async resize(jobId: string, parallelism: number): Promise<void> {
    const path = pathOf("Job", this.namespace, jobObjectName(jobId));
    await this.client.apply(path, jobParallelism(jobId, this.namespace, parallelism), { part: PARALLELISM });
  }

  /** The cluster ends the pods. */
  async remove(jobId: string): Promise<void> {
    for (const kind of [...JOB_KINDS].reverse())
      await this.client.remove(pathOf(kind, this.namespace, jobObjectName(jobId)));
  }

  async removePod(name: string, uid: string): Promise<void> {
    await this.client.remove(pathOf("Pod", this.namespace, name), uid, 0);
  }

  /** The jobs that have any object in the cluster. */
  async found(): Promise<Set<string>> {
    const jobs = new Set<string>();
    for (const kind of JOB_KINDS) {
      const query = { labelSelector: JOB_SELECTOR };
      const path = pathOf(kind, this.namespace);
      const { items } = await this.client.get<{ items: KubernetesObject[] }>(path, query);
      for (const { metadata } of items) jobs.add(metadata.labels?.[JOB_LABEL] ?? "");
    }
    return jobs;
  }
}
