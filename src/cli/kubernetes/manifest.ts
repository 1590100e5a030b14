/**
 * The objects that run Quern in Kubernetes: all in one namespace. One pod with a volume; or, with `--state`, pods without
 * one, of which one is active (docs/decisions/0038-servers-of-a-cluster.md). One pod has no right in the cluster, unless
 * workers run in pods of their own (server-role.ts).
 */
import { hasRights, type PodChoice, podSpec, portsOf, SERVER } from "./server-pod.ts";
import { bindingOf, roleOf } from "./server-role.ts";

export const NAME = SERVER;
/** A node that is gone takes its servers with it after so long. */
const LOST_SECONDS = 30;
const LABELS = { "app.kubernetes.io/name": NAME };
/** Of the active server's pod, which gives it to itself (src/kubernetes/active-pod.ts). */
export const ACTIVE_LABEL = "quern.dev/active";
/** Selects the pods of Quern. */
export const LABEL_SELECTOR = `app.kubernetes.io/name=${NAME}`;

/** The objects in the order in which to apply them. */
export function manifest(choice: PodChoice): readonly object[] {
  const metadata = { name: NAME, namespace: choice.namespace, labels: LABELS };
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata, automountServiceAccountToken: false },
    ...(hasRights(choice) ? [roleOf(metadata, choice), bindingOf(metadata)] : []),
    networkPolicy(metadata, choice),
    service(metadata, choice),
    ...(choice.replicas === 1 ? [] : [budget(metadata)]),
    choice.state === undefined ? statefulSet(metadata, choice) : deployment(metadata, choice),
  ];
}

function service(metadata: object, choice: PodChoice) {
  const { state, workerImage } = choice;
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata,
    spec: {
      selector: state === undefined ? LABELS : { ...LABELS, [ACTIVE_LABEL]: "true" },
      ports: portsOf(choice).map(([name, port]) => ({ name, port, targetPort: name })),
      // A pod's project is needed before the server is ready for requests.
      ...(workerImage === undefined || state !== undefined ? {} : { publishNotReadyAddresses: true }),
    },
  };
}

/** Whoever empties nodes takes one server at a time, and the next one once another is there. */
function budget(metadata: object) {
  const spec = {
    maxUnavailable: 1,
    unhealthyPodEvictionPolicy: "AlwaysAllow",
    selector: { matchLabels: LABELS },
  };
  return { apiVersion: "policy/v1", kind: "PodDisruptionBudget", metadata, spec };
}

/** Pods of the same namespace may call the server. What predictors call stays open: models, packages, services. */
function networkPolicy(metadata: object, choice: PodChoice) {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata,
    spec: {
      podSelector: { matchLabels: LABELS },
      policyTypes: ["Ingress"],
      ingress: [{ from: [{ podSelector: {} }], ports: portsOf(choice).map(([port]) => ({ port })) }],
    },
  };
}

/** Of a StatefulSet there is never a second pod with the same volume, not even during an update. */
function statefulSet(metadata: object, choice: PodChoice) {
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata,
    spec: {
      replicas: 1,
      serviceName: NAME,
      selector: { matchLabels: LABELS },
      template: { metadata: { labels: LABELS }, spec: podSpec(choice) },
      volumeClaimTemplates: [
        {
          metadata: { name: "data" },
          spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: choice.storage } } },
        },
      ],
    },
  };
}

/** An update starts a pod more, and ends an old one once the new one is there as a standby. */
function deployment(metadata: object, choice: PodChoice) {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata,
    spec: {
      replicas: choice.replicas,
      revisionHistoryLimit: 2,
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      selector: { matchLabels: LABELS },
      template: { metadata: { labels: LABELS }, spec: { ...podSpec(choice), ...placement() } },
    },
  };
}

/** Servers on nodes of their own, if there are several nodes. One on a node that is lost starts elsewhere soon. */
function placement() {
  const lost = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
  return {
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: "kubernetes.io/hostname",
        whenUnsatisfiable: "ScheduleAnyway",
        labelSelector: { matchLabels: LABELS },
      },
    ],
    tolerations: lost.map((key) => {
      return { key, operator: "Exists", effect: "NoExecute", tolerationSeconds: LOST_SECONDS };
    }),
  };
}
