/**
 * The objects that run Quern as one pod of Kubernetes: all in one namespace. None of them has any right, unless real-time
 * APIs run in pods of their own (server-role.ts).
 */
import { bindingOf, roleOf } from "./server-role.ts";

export interface PodChoice {
  namespace: string;
  image: string;
  /** Capacity of the volume that holds the data directory, as a Kubernetes quantity. */
  storage: string;
  /** CPUs that workers may reserve together. */
  cpus: number;
  /** Memory that workers may reserve together, in MiB. */
  memoryMi: number;
  /** Name of a Secret whose key `url` is the URL of a PostgreSQL database; undefined for SQLite. */
  databaseSecret: string | undefined;
  /** Image of the pods of real-time APIs; undefined if these run inside the server's pod. */
  workerImage: string | undefined;
}

export const NAME = "quern";
const PORT = 8420;
const PODS_PORT = 8423;
/** The user `node` of Node's images. */
const USER = 1000;
const VOLUME = "/var/lib/quern";
/** What the gateway and the controller take besides the workers. */
const SERVER_CPUS = 0.25;
const SERVER_MEMORY_MI = 768;
/** Time for the Service to learn that the pod goes, before the server stops listening. */
const LEAVE_SECONDS = 5;
/** Requests in flight have 30 seconds to finish, then batches have ten (docs/guides/service.md). */
const DRAIN_SECONDS = 40;
const SPARE_SECONDS = 15;
const LABELS = { "app.kubernetes.io/name": NAME };
/** Selects the pods of Quern. */
export const LABEL_SELECTOR = `app.kubernetes.io/name=${NAME}`;

/** The objects in the order in which to apply them. */
export function manifest(choice: PodChoice): readonly object[] {
  const metadata = { name: NAME, namespace: choice.namespace, labels: LABELS };
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata, automountServiceAccountToken: false },
    ...(choice.workerImage === undefined ? [] : [roleOf(metadata), bindingOf(metadata)]),
    networkPolicy(metadata, choice),
    {
      apiVersion: "v1",
      kind: "Service",
      metadata,
      spec: {
        selector: LABELS,
        ports: portsOf(choice).map(([name, port]) => ({ name, port, targetPort: name })),
        // A pod's project is needed before the server is ready for requests.
        ...(choice.workerImage === undefined ? {} : { publishNotReadyAddresses: true }),
      },
    },
    statefulSet(metadata, choice),
  ];
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

/** The names and numbers of the server's ports: `pods` is where workers' pods fetch their project. */
function portsOf({ workerImage }: PodChoice): readonly [string, number][] {
  return [["http", PORT], ...(workerImage === undefined ? [] : [["pods", PODS_PORT] as [string, number]])];
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

function podSpec(choice: PodChoice) {
  return {
    serviceAccountName: NAME,
    automountServiceAccountToken: choice.workerImage !== undefined,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: LEAVE_SECONDS + DRAIN_SECONDS + SPARE_SECONDS,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: USER,
      runAsGroup: USER,
      fsGroup: USER,
      fsGroupChangePolicy: "OnRootMismatch",
      seccompProfile: { type: "RuntimeDefault" },
    },
    initContainers: [firstKey(choice)],
    containers: [server(choice)],
    volumes: [{ name: "tmp", emptyDir: {} }],
  };
}

/** The server does not listen on more than loopback before there is a key. The file holds it for whoever may exec. */
function firstKey(choice: PodChoice) {
  const file = `${VOLUME}/first-key`;
  const create = `quern keys create --scope predict --data-dir ${VOLUME}/data >${file}.new && mv ${file}.new ${file}`;
  return {
    ...container(choice),
    name: "first-key",
    command: ["sh", "-c", `umask 077; test -e ${file} || { ${create}; }`],
  };
}

function server(choice: PodChoice) {
  return {
    ...container(choice),
    name: NAME,
    // A volume on another node looks like a copy, whose jobs would pause.
    args: ["up", "--continue-jobs"],
    ports: portsOf(choice).map(([name, containerPort]) => ({ name, containerPort })),
    startupProbe: { ...probe("livez"), periodSeconds: 2, failureThreshold: 300 },
    livenessProbe: { ...probe("livez"), periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 },
    readinessProbe: { ...probe("readyz"), periodSeconds: 2, timeoutSeconds: 2 },
    lifecycle: { preStop: { exec: { command: ["sleep", String(LEAVE_SECONDS)] } } },
  };
}

/** What both containers have. */
function container(choice: PodChoice) {
  const memory = `${choice.memoryMi + SERVER_MEMORY_MI}Mi`;
  return {
    image: choice.image,
    env: environment(choice),
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    },
    resources: { requests: { cpu: String(choice.cpus + SERVER_CPUS), memory }, limits: { memory } },
    volumeMounts: [
      { name: "data", mountPath: VOLUME },
      { name: "tmp", mountPath: "/tmp" },
    ],
  };
}

function probe(path: string) {
  return { httpGet: { path: `/-/${path}`, port: "http" } };
}

function environment({ cpus, memoryMi, databaseSecret, workerImage }: PodChoice): readonly object[] {
  const variables = [
    { name: "QUERN_LISTEN", value: `0.0.0.0:${PORT}` },
    // Below the volume's root, which belongs to root and may hold `lost+found`.
    { name: "QUERN_DATA_DIR", value: `${VOLUME}/data` },
    { name: "QUERN_CPUS", value: String(cpus) },
    { name: "QUERN_MEMORY", value: `${memoryMi}Mi` },
    { name: "HOME", value: "/tmp" },
    ...(workerImage === undefined
      ? []
      : [
          { name: "QUERN_ENGINE", value: "kubernetes" },
          { name: "QUERN_WORKER_IMAGE", value: workerImage },
        ]),
  ];
  if (databaseSecret === undefined) return variables;
  const secretKeyRef = { name: databaseSecret, key: "url" };
  return [...variables, { name: "QUERN_DATABASE", valueFrom: { secretKeyRef } }];
}
