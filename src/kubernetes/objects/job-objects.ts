/** The objects of one job, as they are applied. Pure. */
import type { Kind } from "../resources.ts";
import {
  jobLabels,
  jobObjectName,
  QUEUE_LABEL,
  VERSION_ANNOTATION,
  VERSION_LABEL,
  versionLabel,
} from "./names.ts";
import { type AppliedObject, applied, filesOf, podSpec } from "./worker-objects.ts";
import type { JobPods, WorkerSecret } from "./worker-pods.ts";

/** The kinds of a job's objects, in the order in which they are applied. They are removed the other way round. */
export const JOB_KINDS = ["Secret", "Job"] as const satisfies readonly Kind[];

/** Quern says when a job is over, and how often its workers may die: the cluster never gives up. */
const NEVER = 2_147_483_647;
/** Only for a Job that something else than Quern has ended. */
const KEPT_SECONDS = 600;

export function jobObjects(pods: JobPods, secret: WorkerSecret): readonly AppliedObject[] {
  const { api, jobId, namespace, queue, predictorId } = pods;
  const labels = jobLabels(api, jobId);
  const metadata = { name: jobObjectName(jobId), namespace, labels };
  const queued = queue === undefined ? labels : { ...labels, [QUEUE_LABEL]: queue };
  const job = {
    ...applied("Job", { ...metadata, labels: queued }),
    // Without `suspend`: a queue suspends it, and admits it.
    spec: {
      parallelism: pods.parallelism,
      completions: NEVER,
      backoffLimit: NEVER,
      ttlSecondsAfterFinished: KEPT_SECONDS,
      template: {
        metadata: {
          labels: { ...labels, [VERSION_LABEL]: versionLabel(predictorId) },
          annotations: { [VERSION_ANNOTATION]: predictorId },
        },
        spec: {
          // A container that ends as a whole begins again in its pod, and the launcher knows what was in hand.
          restartPolicy: "OnFailure",
          ...podSpec(pods, { labels, secretName: metadata.name, isOfJob: true }),
        },
      },
    },
  };
  return [{ ...applied("Secret", metadata), ...filesOf(secret) }, job];
}

/** The one field of a Job that changes: how many pods it has. */
export function jobParallelism(jobId: string, namespace: string, parallelism: number): object {
  const { apiVersion, kind } = applied("Job", { name: "", namespace, labels: {} });
  return { apiVersion, kind, metadata: { name: jobObjectName(jobId), namespace }, spec: { parallelism } };
}
