/** `quern export kubernetes`: what it prints, and that the command and settings in it start the server. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { podChoice } from "../../../src/cli/kubernetes/export.ts";
import { ACTIVE_LABEL as MANIFEST_LABEL, manifest } from "../../../src/cli/kubernetes/manifest.ts";
import { ACTIVE_LABEL } from "../../../src/kubernetes/active-pod.ts";
import { eventually } from "../../harness/eventually.ts";
import { root, TestServer } from "../../harness/server.ts";

const server = new TestServer();
const OPTIONS = { namespace: "ml", image: "quern:1", storage: "10Gi", cpus: "2", memory: "4Gi" };

describe("quern export kubernetes", () => {
  it("prints YAML of objects in the namespace", () => {
    const { code, out } = server.cli(["export", "kubernetes", "--namespace", "ml", "--image", "quern:1"]);
    const objects = parseAllDocuments(out).map((document) => document.toJS());
    expect([code, objects]).toEqual([0, JSON.parse(JSON.stringify(manifest(podChoice(OPTIONS))))]);
    expect(objects.map(({ kind, metadata }) => [kind, metadata.namespace])).toEqual([
      ["ServiceAccount", "ml"],
      ["NetworkPolicy", "ml"],
      ["Service", "ml"],
      ["StatefulSet", "ml"],
    ]);
  });

  it("is for an image that has every client, those that are optional on a laptop too", () => {
    const dockerfile = readFileSync(join(root, "deploy", "Dockerfile"), "utf8");
    const { peerDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
      peerDependencies: Record<string, string>;
    };
    for (const client of Object.keys(peerDependencies)) expect(dockerfile).toContain(` ${client}@`);
  });

  it.each([
    ["--namespace", "Ml"],
    ["--image", "a b"],
    ["--storage", "10GB"],
    ["--cpus", "none"],
    ["--memory", "0Gi"],
    ["--database-secret", "a_b"],
    ["--replicas", "0"],
    ["--replicas", "two"],
    ["--state", "file:///tmp/state"],
  ])("refuses %s %s", (option, value) => {
    const { code, err } = server.cli(["export", "kubernetes", option, value]);
    expect([code, err]).toEqual([2, expect.stringContaining(`${option} "${value}" is not`)]);
  });
});

describe("with real-time APIs in pods of their own", () => {
  const objects = manifest(
    podChoice({
      ...OPTIONS,
      databaseSecret: "postgres",
      engine: "kubernetes",
      workerImage: "quern-worker:1",
    }),
  ) as { kind: string; [field: string]: unknown }[];
  const of = (kind: string) => objects.find((object) => object.kind === kind)!;

  it("gives the server rights in its namespace, and nothing cluster-wide", () => {
    expect(objects.map(({ kind }) => kind)).toEqual([
      ...["ServiceAccount", "Role", "RoleBinding", "NetworkPolicy", "Service", "StatefulSet"],
    ]);
    expect(of("RoleBinding")).toMatchObject({ roleRef: { kind: "Role", name: "quern" } });
    const { rules } = of("Role") as unknown as { rules: { resources: string[]; verbs: string[] }[] };
    expect(rules.flatMap(({ verbs }) => verbs)).not.toContain("*");
    expect(rules.flatMap(({ resources }) => resources)).toEqual([
      ...["deployments", "jobs", "poddisruptionbudgets", "networkpolicies", "secrets", "pods/log", "pods"],
    ]);
  });

  it("lets pods fetch their project, before the server is ready too", () => {
    expect(of("Service")).toMatchObject({
      spec: { publishNotReadyAddresses: true, ports: [{ name: "http" }, { name: "pods", port: 8423 }] },
    });
    expect(of("NetworkPolicy")).toMatchObject({
      spec: { ingress: [{ ports: [{ port: "http" }, { port: "pods" }] }] },
    });
    expect(of("StatefulSet")).toMatchObject({
      spec: { template: { spec: { automountServiceAccountToken: true } } },
    });
  });
});

describe("with a state, and a standby", () => {
  const STATE = { databaseSecret: "postgres", state: "s3://bucket/quern", stateSecret: "store" };
  const objects = (options: object) =>
    manifest(podChoice({ ...OPTIONS, ...STATE, ...options })) as { kind: string; [field: string]: unknown }[];
  const of = (kind: string, options: object = { replicas: "2" }) =>
    objects(options).find((object) => object.kind === kind);

  it("are pods of a Deployment without a volume, of which an update starts one before it ends another", () => {
    expect(objects({ replicas: "2" }).map(({ kind }) => kind)).toEqual([
      ...["ServiceAccount", "Role", "RoleBinding", "NetworkPolicy", "Service", "PodDisruptionBudget"],
      "Deployment",
    ]);
    const env = expect.arrayContaining([
      { name: "QUERN_STATE", value: "s3://bucket/quern" },
      { name: "QUERN_POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
    ]);
    const envFrom = [{ secretRef: { name: "store" } }];
    expect(of("Deployment")).toMatchObject({
      spec: {
        replicas: 2,
        strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
        template: {
          spec: {
            initContainers: [
              {
                envFrom,
                command: ["sh", "-c", expect.stringContaining("keys create --scope predict --if-none")],
              },
            ],
            containers: [{ args: ["up"], env, envFrom }],
            volumes: [{ name: "tmp" }, { name: "data", emptyDir: { sizeLimit: "10Gi" } }],
            topologySpreadConstraints: [{ topologyKey: "kubernetes.io/hostname" }],
          },
        },
      },
    });
  });

  it("counts a standby as ready, and sends requests to the pod that the active server has labelled", () => {
    const readinessProbe = { httpGet: { path: "/-/readyz?standby=ok" } };
    expect(of("Deployment")).toMatchObject({
      spec: { template: { spec: { containers: [{ readinessProbe }] } } },
    });
    expect(of("Service")).toMatchObject({
      spec: { selector: { "app.kubernetes.io/name": "quern", [ACTIVE_LABEL]: "true" } },
    });
    expect(of("Service", { engine: "kubernetes", workerImage: "w:1" })).not.toHaveProperty(
      "spec.publishNotReadyAddresses",
    );
    expect(MANIFEST_LABEL).toBe(ACTIVE_LABEL);
  });

  it("may only list and change pods, unless workers are pods too", () => {
    expect(of("Role")).toMatchObject({ rules: [{ resources: ["pods"], verbs: ["list", "patch"] }] });
    expect((of("Role") as unknown as { rules: object[] }).rules).toHaveLength(1);
  });

  it("is one server without a budget for disruptions unless more are asked for", () => {
    expect(of("PodDisruptionBudget", {})).toBeUndefined();
    expect(of("Deployment", {})).toMatchObject({ spec: { replicas: 1 } });
  });

  it.each([
    [["--replicas", "2"], "--replicas 2 needs --database-secret and --state"],
    [["--replicas", "2", "--database-secret", "postgres"], "and a prefix such as s3://"],
    [["--state", "s3://bucket/quern"], "--state needs --database-secret"],
    [["--state-secret", "store"], "--state-secret needs --state"],
  ])("refuses %j, with the cure", (args, message) => {
    const { code, err } = server.cli(["export", "kubernetes", ...args]);
    expect([code, err]).toEqual([2, expect.stringContaining(message)]);
  });
});

describe("the pod", () => {
  const [account, , , set] = manifest(podChoice({ ...OPTIONS, databaseSecret: "postgres" }));

  it("has no token of its ServiceAccount and meets the restricted Pod Security Standard", () => {
    expect(account).toMatchObject({ automountServiceAccountToken: false });
    expect(set).toMatchObject({
      spec: {
        replicas: 1,
        template: {
          spec: {
            automountServiceAccountToken: false,
            securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
            containers: [
              {
                args: ["up", "--continue-jobs"],
                securityContext: {
                  allowPrivilegeEscalation: false,
                  readOnlyRootFilesystem: true,
                  capabilities: { drop: ["ALL"] },
                },
              },
            ],
          },
        },
      },
    });
  });

  it("reserves the memory of the workers and of the server, and takes the database from the Secret", () => {
    const QUERN_DATABASE = { valueFrom: { secretKeyRef: { name: "postgres", key: "url" } } };
    const env = expect.arrayContaining([
      { name: "QUERN_MEMORY", value: "4096Mi" },
      { name: "QUERN_DATABASE", ...QUERN_DATABASE },
    ]);
    const resources = { requests: { cpu: "2.25", memory: "4864Mi" }, limits: { memory: "4864Mi" } };
    expect(set).toMatchObject({ spec: { template: { spec: { containers: [{ env, resources }] } } } });
  });

  it("has more time to end than the drain takes", () => {
    expect(set).toMatchObject({ spec: { template: { spec: { terminationGracePeriodSeconds: 60 } } } });
  });
});

/** A container of the manifest, as far as it is run here. */
interface Container {
  command?: string[];
  args?: string[];
  env: { name: string; value: string }[];
}

describe("the containers, run outside of a cluster with their own commands and variables", () => {
  const volume = mkdtempSync(join(tmpdir(), "quern-pod-"));
  const bin = join(volume, "bin");
  const data = join(volume, "data");
  let pod: ChildProcess;
  beforeAll(() => {
    mkdirSync(bin);
    symlinkSync(join(root, "bin", "quern"), join(bin, "quern"));
  });
  afterAll(async () => {
    const ended = new Promise((resolve) => pod.once("exit", resolve));
    pod.kill();
    await ended;
    rmSync(volume, { recursive: true, force: true });
  });

  const here = (text: string) => text.replaceAll("/var/lib/quern", volume);
  const containers = () => {
    const { spec } = manifest(podChoice(OPTIONS))[3] as {
      spec: { template: { spec: { initContainers: [Container]; containers: [Container] } } };
    };
    return spec.template.spec;
  };
  const variables = ({ env }: Container) => ({
    PATH: `${bin}:${process.env.PATH}`,
    QUERN_PYTHON: process.env.QUERN_PYTHON,
    ...Object.fromEntries(env.map(({ name, value }) => [name, here(value)])),
    // Any port of this machine.
    QUERN_LISTEN: "0.0.0.0:0",
    HOME: volume,
  });

  it("make the first key once, and start a server that needs it", async () => {
    const [init] = containers().initContainers;
    const [program, ...args] = init.command!.map(here);
    for (let start = 0; start < 2; start++)
      expect(spawnSync(program!, args, { env: variables(init), encoding: "utf8" }).status).toBe(0);
    expect(readFileSync(join(volume, "first-key"), "utf8").match(/quern_[\w-]{32}/g)).toHaveLength(1);
    const [server] = containers().containers;
    pod = spawn(join(bin, "quern"), server.args!, { env: variables(server), stdio: "ignore" });
    await eventually("it is ready", () => existsSync(join(data, "address")));
    const url = readFileSync(join(data, "address"), "utf8").trim();
    expect((await fetch(`${url}/-/readyz`)).status).toBe(200);
    expect((await fetch(`${url}/-/apis`)).status).toBe(401);
  });
});
