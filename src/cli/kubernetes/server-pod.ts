/** The pod of a server, as `quern export kubernetes` describes it. Pure. */

export interface PodChoice {
  namespace: string;
  image: string;
  /** Size of the data directory, as a Kubernetes quantity: of its volume or, with a state, of the cache on its node. */
  storage: string;
  /** CPUs that workers may reserve together. */
  cpus: number;
  /** Memory that workers may reserve together, in MiB. */
  memoryMi: number;
  /** Name of a Secret whose key `url` is the URL of a PostgreSQL database; undefined for SQLite. */
  databaseSecret: string | undefined;
  /** Where the server keeps its files (`quern up --state`); undefined: in its volume. */
  state: string | undefined;
  /** Name of a Secret whose keys are variables of the server: credentials of the state's store. */
  stateSecret: string | undefined;
  /** Servers, of which one is active. */
  replicas: number;
  /** Image of the pods of real-time APIs; undefined if these run inside the server's pod. */
  workerImage: string | undefined;
}

/** The container, and the account of the pod. */
export const SERVER = "quern";
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

/** The server changes objects of the namespace: its workers' pods, or the label of its own one. */
export function hasRights({ workerImage, state }: PodChoice): boolean {
  return workerImage !== undefined || state !== undefined;
}

/** The names and numbers of the server's ports: `pods` is where workers' pods fetch their project. */
export function portsOf({ workerImage }: PodChoice): readonly [string, number][] {
  return [["http", PORT], ...(workerImage === undefined ? [] : [["pods", PODS_PORT] as [string, number]])];
}

export function podSpec(choice: PodChoice) {
  const cache = { name: "data", emptyDir: { sizeLimit: choice.storage } };
  return {
    serviceAccountName: SERVER,
    automountServiceAccountToken: hasRights(choice),
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
    volumes: [{ name: "tmp", emptyDir: {} }, ...(choice.state === undefined ? [] : [cache])],
  };
}

/**
 * The server does not listen on more than loopback before there is a key. The file holds it for whoever may exec. A pod
 * without a volume makes none if the database has one.
 */
function firstKey(choice: PodChoice) {
  const file = `${VOLUME}/first-key`;
  const unlessThere = choice.state === undefined ? "" : " --if-none";
  const create = `quern keys create --scope predict${unlessThere} --data-dir ${VOLUME}/data >${file}.new && mv ${file}.new ${file}`;
  return {
    ...container(choice),
    name: "first-key",
    command: ["sh", "-c", `umask 077; test -e ${file} || { ${create}; }`],
  };
}

function server(choice: PodChoice) {
  return {
    ...container(choice),
    name: SERVER,
    // A volume on another node looks like a copy, whose jobs would pause.
    args: choice.state === undefined ? ["up", "--continue-jobs"] : ["up"],
    ports: portsOf(choice).map(([name, containerPort]) => ({ name, containerPort })),
    startupProbe: { ...probe("livez"), periodSeconds: 2, failureThreshold: 300 },
    livenessProbe: { ...probe("livez"), periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 },
    // Rollouts, drains and budgets count servers, standbys too. The label says which one gets requests.
    readinessProbe: {
      ...probe(choice.state === undefined ? "readyz" : "readyz?standby=ok"),
      periodSeconds: 2,
      timeoutSeconds: 2,
    },
    lifecycle: { preStop: { exec: { command: ["sleep", String(LEAVE_SECONDS)] } } },
  };
}

/** What both containers have. */
function container(choice: PodChoice) {
  const memory = `${choice.memoryMi + SERVER_MEMORY_MI}Mi`;
  return {
    image: choice.image,
    env: environment(choice),
    ...(choice.stateSecret === undefined ? {} : { envFrom: [{ secretRef: { name: choice.stateSecret } }] }),
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

function environment({ cpus, memoryMi, databaseSecret, state, workerImage }: PodChoice): readonly object[] {
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
    ...(state === undefined
      ? []
      : [
          { name: "QUERN_STATE", value: state },
          { name: "QUERN_POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
        ]),
  ];
  if (databaseSecret === undefined) return variables;
  const secretKeyRef = { name: databaseSecret, key: "url" };
  return [...variables, { name: "QUERN_DATABASE", valueFrom: { secretKeyRef } }];
}
