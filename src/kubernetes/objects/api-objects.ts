/** The objects of one real-time API, as they are applied: only the fields that are Quern's. Pure. */
import { apiVersionOf, type Kind } from "../resources.ts";
import {
  API_LABEL,
  apiLabels,
  EXTRA_ANNOTATION,
  MANAGED,
  objectName,
  VERSION_ANNOTATION,
  VERSION_LABEL,
  versionLabel,
} from "./names.ts";
import { type AppliedObject, applied, filesOf, podSpec } from "./worker-objects.ts";
import { HEALTH_PORT, WORKER_PORT, type WorkerPods, type WorkerSecret } from "./worker-pods.ts";

/** The kinds of an API's objects, in the order in which they are applied. They are removed the other way round. */
export const API_KINDS = ["Secret", "PodDisruptionBudget", "Deployment"] as const satisfies readonly Kind[];

/** A new pod has proved that it stays before an old one goes. */
const STEADY_SECONDS = 2;

export function apiObjects(pods: WorkerPods, secret: WorkerSecret): readonly AppliedObject[] {
  const { api, namespace } = pods;
  const files = { ...object("Secret", api, namespace), ...filesOf(secret) };
  return [files, budgetOf(pods), deploymentOf(pods)];
}

/** A person who empties nodes takes one pod at a time. A pod that does not serve holds nobody up. */
function budgetOf({ api, namespace }: WorkerPods) {
  const selector = { matchLabels: apiLabels(api) };
  const spec = { maxUnavailable: 1, unhealthyPodEvictionPolicy: "AlwaysAllow", selector };
  return { ...object("PodDisruptionBudget", api, namespace), spec };
}

function deploymentOf(pods: WorkerPods) {
  const { api, namespace, predictorId, replicas, extra = 0, surge, unavailable } = pods;
  const labels = apiLabels(api);
  const { metadata, ...kind } = object("Deployment", api, namespace);
  // The next controller reads how many pods are wanted.
  const annotations = extra === 0 ? {} : { annotations: { [EXTRA_ANNOTATION]: String(extra) } };
  return {
    ...kind,
    metadata: { ...metadata, ...annotations },
    spec: {
      replicas,
      revisionHistoryLimit: 2,
      minReadySeconds: STEADY_SECONDS,
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: surge, maxUnavailable: unavailable } },
      selector: { matchLabels: labels },
      template: {
        metadata: {
          labels: { ...labels, [VERSION_LABEL]: versionLabel(predictorId) },
          annotations: { [VERSION_ANNOTATION]: predictorId },
        },
        spec: podSpec(pods, { labels, secretName: objectName(api), isOfJob: false }),
      },
    },
  };
}

export interface WorkerNetwork {
  namespace: string;
  /** Labels of the pods of the server, which call workers; undefined if it is no pod: all may open the port then. */
  server: Readonly<Record<string, string>> | undefined;
  /** The port of the server's PostgreSQL, which no worker may open. */
  databasePort: number;
}

export const POLICY_NAME = "quern-workers";

/**
 * Who may open the ports of workers, and what these may open: everything but the port of the database. A person may
 * allow more with a policy of their own.
 */
export function workersPolicy({
  namespace,
  server,
  databasePort,
}: WorkerNetwork): AppliedObject & { spec: object } {
  const from = server === undefined ? {} : { from: [{ podSelector: { matchLabels: server } }] };
  const ports = [WORKER_PORT, HEALTH_PORT].map((port) => ({ protocol: "TCP", port }));
  const ranges = [
    [1, databasePort - 1],
    [databasePort + 1, 65_535],
  ].filter(([first, last]) => first! <= last!);
  const others = ranges.map(([port, endPort]) => ({ protocol: "TCP", port, endPort }));
  return {
    apiVersion: apiVersionOf("NetworkPolicy"),
    kind: "NetworkPolicy",
    metadata: { name: POLICY_NAME, namespace, labels: MANAGED },
    spec: {
      podSelector: { matchExpressions: [{ key: API_LABEL, operator: "Exists" }] },
      policyTypes: ["Ingress", "Egress"],
      ingress: [{ ...from, ports }],
      egress: [{ ports: [...others, { protocol: "UDP", port: 1, endPort: 65_535 }] }],
    },
  };
}

function object(kind: Kind, api: string, namespace: string): AppliedObject {
  return applied(kind, { name: objectName(api), namespace, labels: apiLabels(api) });
}
