/** The objects of a real-time API: what a reviewer of a cluster looks for. The cluster itself judges them elsewhere. */
import { describe, expect, it } from "vitest";
import { apiObjects, workersPolicy } from "../../src/kubernetes/objects/api-objects.ts";
import { apiLabels, apiOf, objectName, versionLabel } from "../../src/kubernetes/objects/names.ts";
import type { WorkerPods } from "../../src/kubernetes/objects/worker-pods.ts";

const PODS: WorkerPods = {
  api: "echo",
  predictorId: "0123456789abcdef01234567~a-B_9xyz",
  namespace: "ml",
  image: "quern-worker:1",
  replicas: 3,
  surge: "25%",
  unavailable: 0,
  graceSeconds: 65,
  cpuMillis: 200,
  memoryBytes: 1_073_741_824,
  gpus: 1,
  env: { HOME_OF: "$(HOME)", COST: "5$" },
  pythonPath: "lib",
  projectUrl: "https://quern.ml.svc:8423/-/projects/0123456789abcdef01234567",
  nodeSelector: undefined,
  tolerations: [],
  serviceAccount: undefined,
  secrets: [],
};
const SECRET = { token: "t", cert: "c", key: "k", authority: "a" };

type Tree = { [name: string]: Tree } & Tree[];
/** The values below these names of each object. */
const part = (pods: Partial<WorkerPods>, kind: string) =>
  apiObjects({ ...PODS, ...pods }, SECRET).find((object) => object.kind === kind) as unknown as Tree;
const podOf = (pods: Partial<WorkerPods> = {}) => part(pods, "Deployment").spec!.template!.spec!;
const containerOf = (pods: Partial<WorkerPods> = {}) => podOf(pods).containers![0]!;

describe("the Deployment of an API", () => {
  it("replaces pods only once new ones serve", () => {
    expect(part({}, "Deployment").spec).toMatchObject({
      replicas: 3,
      minReadySeconds: 2,
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: 0 } },
    });
    const { readinessProbe, livenessProbe } = containerOf();
    expect([readinessProbe, livenessProbe]).toMatchObject([
      { httpGet: { path: "/readyz", port: "health" }, periodSeconds: 1 },
      { httpGet: { path: "/livez", port: "health" } },
    ]);
  });

  it("lets a pod leave the routes, finish its requests, and end, before the kubelet kills it", () => {
    const { terminationGracePeriodSeconds } = podOf();
    const command = ["python3", "-c", "import time; time.sleep(3)"];
    expect(containerOf().lifecycle).toEqual({ preStop: { exec: { command } } });
    expect(terminationGracePeriodSeconds).toBe(3 + 65 + 5);
    expect(containerOf().env).toContainEqual({ name: "QUERN_GRACE", value: "65" });
  });

  it("meets the restricted Pod Security Standard, and has no right in the cluster", () => {
    expect(podOf()).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: "RuntimeDefault" } },
    });
    expect(containerOf().securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
  });

  it("asks for what compute says, and limits memory and GPUs", () => {
    const amounts = { memory: "1073741824", "nvidia.com/gpu": "1" };
    expect(containerOf().resources).toEqual({ requests: { cpu: "200m", ...amounts }, limits: amounts });
    expect(containerOf({ memoryBytes: undefined, gpus: 0 }).resources).toEqual({
      requests: { cpu: "200m" },
      limits: {},
    });
  });

  it("gives variables as they are written", () => {
    const env = containerOf().env as unknown as { name: string; value: string }[];
    const values = Object.fromEntries(env.map(({ name, value }) => [name, value]));
    expect(values).toMatchObject({
      HOME_OF: "$$(HOME)",
      COST: "5$$",
      QUERN_PROJECT_URL: PODS.projectUrl,
      QUERN_PYTHON_PATH: "lib",
    });
  });

  it("gives each pod a new version's label, and spreads pods over nodes", () => {
    const { labels, annotations } = part({}, "Deployment").spec!.template!.metadata!;
    expect(labels).toMatchObject({
      "quern.dev/api": "echo",
      "quern.dev/version": "0123456789abcdef01234567.a-B.9xyz.v",
    });
    expect(annotations).toEqual({ "quern.dev/predictor-id": PODS.predictorId });
    expect(podOf().topologySpreadConstraints).toMatchObject([
      { topologyKey: "kubernetes.io/hostname", whenUnsatisfiable: "ScheduleAnyway" },
    ]);
  });

  it("tolerates a lost node for half a minute, unless the configuration says otherwise", () => {
    const keys = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
    expect(podOf().tolerations).toMatchObject(keys.map((key) => ({ key, tolerationSeconds: 30 })));
    const own = { key: keys[0], operator: "Exists", effect: "NoExecute" } as const;
    expect(podOf({ tolerations: [own] }).tolerations).toMatchObject([own, { key: keys[1] }]);
  });

  it("runs where and as the configuration says", () => {
    const pod = podOf({ nodeSelector: { disk: "fast" }, serviceAccount: "reader", secrets: ["keys"] });
    expect(pod).toMatchObject({
      nodeSelector: { disk: "fast" },
      serviceAccountName: "reader",
      automountServiceAccountToken: true,
      containers: [{ envFrom: [{ secretRef: { name: "keys" } }] }],
    });
  });
});

it("has a Secret with the worker's files, and a budget for people who empty nodes", () => {
  expect(part({}, "Secret")).toMatchObject({
    metadata: { name: "quern-echo-api" },
    data: { token: "dA==", "tls.crt": "Yw==", "tls.key": "aw==", "ca.crt": "YQ==" },
  });
  expect(part({}, "PodDisruptionBudget").spec).toMatchObject({ maxUnavailable: 1 });
});

describe("the NetworkPolicy of workers", () => {
  it("lets only the server in, and workers open everything but the database's port", () => {
    const server = { "app.kubernetes.io/name": "quern" };
    const { spec } = workersPolicy({ namespace: "ml", server, databasePort: 5432 });
    const tcp = (port: number, endPort?: number) => ({ protocol: "TCP", port, ...(endPort && { endPort }) });
    expect(spec).toMatchObject({
      policyTypes: ["Ingress", "Egress"],
      ingress: [{ from: [{ podSelector: { matchLabels: server } }], ports: [tcp(8421), tcp(8422)] }],
      egress: [{ ports: [tcp(1, 5431), tcp(5433, 65_535), { protocol: "UDP", port: 1, endPort: 65_535 }] }],
    });
  });

  it("lets everybody in if the server is no pod, and takes a database at either end of the ports", () => {
    const policy = (databasePort: number) =>
      workersPolicy({ namespace: "ml", server: undefined, databasePort }).spec as {
        ingress: { from?: object }[];
        egress: { ports: { port: number }[] }[];
      };
    expect(policy(5432).ingress[0]!.from).toBeUndefined();
    expect([1, 65_535].map((port) => policy(port).egress[0]!.ports.map((range) => range.port))).toEqual([
      [2, 1],
      [1, 1],
    ]);
  });
});

describe("names", () => {
  it.each(["echo", "a", "ends-", "a-0", `a${"b".repeat(41)}`])("%s is found again in its label", (api) => {
    expect(apiOf(apiLabels(api))).toBe(api);
    expect(apiLabels(api)["quern.dev/api"]).toMatch(/^[a-z0-9]([-\w.]*[a-z0-9])?$/);
    expect(objectName(api)).toMatch(/^[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?$/);
  });

  it("have no API for an object that is not one's", () => {
    expect([apiOf({}), apiOf(undefined)]).toEqual([undefined, undefined]);
  });

  it.each(["0123456789abcdef01234567", "0123456789abcdef01234567~-_aBcDe_"])("%s is a label", (id) => {
    expect(versionLabel(id)).toMatch(/^[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?$/);
  });
});
