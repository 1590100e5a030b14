/**
 * Names and labels of the objects of real-time APIs and of jobs. An API's name is a label of a host already, but it may end with a
 * hyphen, which nothing in a cluster may. Pure.
 */

/** Who made an object: all that have it are Quern's. */
export const MANAGED = { "app.kubernetes.io/managed-by": "quern" } as const;
/** The API of an object. */
export const API_LABEL = "quern.dev/api";
/** The version of a pod. As a label, for people who select by it; the annotation has its id as it is. */
export const VERSION_LABEL = "quern.dev/version";
export const VERSION_ANNOTATION = "quern.dev/predictor-id";
/** How many of a Deployment's pods are there only until they have replaced others. */
export const EXTRA_ANNOTATION = "quern.dev/extra-pods";
/** The job of an object. */
export const JOB_LABEL = "quern.dev/job";
/** The queue of Kueue that admits a Job with this label. */
export const QUEUE_LABEL = "kueue.x-k8s.io/queue-name";
/** Selects all objects of real-time APIs. */
export const API_SELECTOR = `app.kubernetes.io/managed-by=quern,${API_LABEL},!${JOB_LABEL}`;
/** Selects all objects of jobs. */
export const JOB_SELECTOR = `app.kubernetes.io/managed-by=quern,${JOB_LABEL}`;

const END = "_0";

/** The name of all objects of an API. */
export function objectName(api: string): string {
  return `quern-${api}-api`;
}

export function apiLabels(api: string): Readonly<Record<string, string>> {
  return { ...MANAGED, [API_LABEL]: api.endsWith("-") ? `${api}${END}` : api };
}

/** The name of all objects of a job. Its id is a label of a host. */
export function jobObjectName(jobId: string): string {
  return `quern-job-${jobId}`;
}

export function jobLabels(api: string, jobId: string): Readonly<Record<string, string>> {
  return { ...apiLabels(api), [JOB_LABEL]: jobId };
}

/** The API whose label an object has; undefined if it has none. */
export function apiOf(labels: Readonly<Record<string, string>> | undefined): string | undefined {
  const label = labels?.[API_LABEL];
  return label?.endsWith(END) ? label.slice(0, -END.length) : label;
}

/** A version's id as the value of a label. A refreshed version has a `~` in its id. */
export function versionLabel(predictorId: string): string {
  return `${predictorId.replace(/[^A-Za-z0-9-]/g, ".")}.v`;
}

/** The name in the certificate of an API's workers. */
export function workerHost(api: string, namespace: string): string {
  return `${objectName(api)}.${namespace}`;
}
