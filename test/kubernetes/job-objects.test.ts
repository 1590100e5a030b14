/** The objects of a job: what a reviewer of a cluster looks for. The cluster itself judges them elsewhere. */
import { describe, expect, it } from "vitest";
import { jobObjects, jobParallelism } from "../../src/kubernetes/objects/job-objects.ts";
import type { JobPods } from "../../src/kubernetes/objects/worker-pods.ts";

const PODS: JobPods = {
  api: "squares-",
  jobId: "01k0000000000000000000000a",
  predictorId: "0123456789abcdef01234567~x",
  namespace: "ml",
  image: "quern-worker:1",
  parallelism: 3,
  queue: undefined,
  graceSeconds: 10,
  cpuMillis: 200,
  memoryBytes: 1_073_741_824,
  gpus: 1,
  env: {},
  pythonPath: undefined,
  projectUrl: "https://quern.ml.svc:8423/-/projects/0123456789abcdef01234567",
  nodeSelector: { zone: "a" },
  tolerations: [],
  serviceAccount: undefined,
  secrets: ["keys"],
};
const SECRET = { token: "t", cert: "c", key: "k", authority: "a" };

type Tree = { [name: string]: Tree } & Tree[];
const objects = (pods: Partial<JobPods> = {}) =>
  jobObjects({ ...PODS, ...pods }, SECRET) as unknown as Tree[];
const jobOf = (pods: Partial<JobPods> = {}) => objects(pods)[1]!;
const podOf = (pods: Partial<JobPods> = {}) => jobOf(pods).spec!.template!.spec!;

describe("the Job of a job", () => {
  it("has as many pods as workers, and never gives up by itself", () => {
    const { spec } = jobOf();
    expect(spec).toMatchObject({ parallelism: 3, completions: 2 ** 31 - 1, backoffLimit: 2 ** 31 - 1 });
    expect(spec).not.toHaveProperty("activeDeadlineSeconds");
    expect(podOf().restartPolicy).toBe("OnFailure");
  });

  it("leaves `suspend` to the queue that its label names", () => {
    expect(jobOf().metadata!.labels).not.toHaveProperty("kueue.x-k8s.io/queue-name");
    const queued = jobOf({ queue: "gpus" });
    expect(queued.metadata!.labels).toMatchObject({ "kueue.x-k8s.io/queue-name": "gpus" });
    expect(queued.spec).not.toHaveProperty("suspend");
    expect(jobParallelism(PODS.jobId, "ml", 2)).toEqual({
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: { name: "quern-job-01k0000000000000000000000a", namespace: "ml" },
      spec: { parallelism: 2 },
    });
  });

  it("has pods like those of replicas, which leave at once and end with their worker", () => {
    const [container] = podOf().containers!;
    expect(container).not.toHaveProperty("lifecycle");
    expect(podOf().terminationGracePeriodSeconds).toBe(10 + 5);
    expect(container!.env).toContainEqual({ name: "QUERN_ENDS_WITH_WORKER", value: "true" });
    expect(container).toMatchObject({
      envFrom: [{ secretRef: { name: "keys" } }],
      resources: { limits: { "nvidia.com/gpu": "1", memory: "1073741824" } },
      securityContext: { readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } },
    });
    expect(podOf()).toMatchObject({
      automountServiceAccountToken: false,
      nodeSelector: { zone: "a" },
      securityContext: { runAsNonRoot: true },
    });
  });

  it("shares its name and labels with its Secret, whose pods the policy of all workers covers", () => {
    const labels = { "quern.dev/api": "squares-_0", "quern.dev/job": PODS.jobId };
    for (const { metadata } of objects())
      expect(metadata).toMatchObject({ name: `quern-job-${PODS.jobId}`, namespace: "ml", labels });
    expect(jobOf().spec!.template!.metadata!.labels).toMatchObject(labels);
  });
});
