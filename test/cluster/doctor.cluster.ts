/** `quern doctor --namespace` in a real cluster: what it says about pods that do not serve, and about the access to it. */
import { spawn } from "node:child_process";
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import { root } from "../harness/server.ts";
import { apply, kubectl, RUN, restrictedNamespace, volume } from "./kubectl.ts";

const NAMESPACE = "examined";
const ADMIN = join(RUN, "admin.kubeconfig");
const directory = mkdtempSync(join(tmpdir(), "quern-doctor-"));

beforeAll(() => {
  apply(restrictedNamespace(NAMESPACE));
  const data = join(RUN, `volume-${NAMESPACE}`);
  mkdirSync(data, { recursive: true });
  chownSync(data, 1000, 1000);
  apply(volume(NAMESPACE, data));
});
afterAll(() => {
  kubectl(["delete", "namespace", NAMESPACE, "--timeout=120s"]);
  kubectl(["delete", "persistentvolume", NAMESPACE, "--wait=false"]);
  rmSync(directory, { recursive: true });
});

interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

function quern(args: readonly string[], kubeconfig = ADMIN): Promise<Ended> {
  const env = { ...process.env, NO_COLOR: "1", KUBECONFIG: kubeconfig };
  const child = spawn(process.execPath, [join(root, "bin", "quern"), ...args], { env });
  const ended = { code: null, stdout: "", stderr: "" } as Ended;
  child.stdout.on("data", (data) => (ended.stdout += data));
  child.stderr.on("data", (data) => (ended.stderr += data));
  return new Promise((resolve) => child.on("close", (code) => resolve({ ...ended, code })));
}

const doctor = (...args: string[]) => quern(["doctor", "--namespace", NAMESPACE, ...args]);

/** Applies what `quern export kubernetes` prints for this image. */
async function install(image: string, cpus = "0.2", kind = ["--storage", "1Gi"]): Promise<void> {
  const size = ["--cpus", cpus, "--memory", "256Mi", ...kind];
  apply((await quern(["export", "kubernetes", "--namespace", NAMESPACE, "--image", image, ...size])).stdout);
}

const TWO = ["--replicas", "2", "--database-secret", "database", "--state", "s3://bucket/quern"];
const QUOTA = /exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0/;

/** Repeats the command until it says this, and ends with this code. */
async function eventuallySays(text: RegExp, code: number): Promise<Ended> {
  let last: Ended | undefined;
  const says = async () => {
    last = await doctor();
    return text.test(last.stdout) && last.code === code;
  };
  await eventually(`it says ${text}`, says, 60_000, () => JSON.stringify(last));
  return last!;
}

it("says how to install Quern where no pod of it is", async () => {
  const { stdout, code } = await doctor();
  expect(code).toBe(1);
  expect(stdout).toContain("Kubernetes v1.34.4, namespace examined");
  expect(stdout).toContain(`quern export kubernetes --namespace ${NAMESPACE} | kubectl apply -f -`);
});

it("says why pods cannot be created, in the cluster's words", async () => {
  const quota = { apiVersion: "v1", kind: "ResourceQuota", metadata: { name: "none", namespace: NAMESPACE } };
  apply({ ...quota, spec: { hard: { pods: "0" } } });
  await install("quern.test/absent:1");
  await eventuallySays(QUOTA, 1);
  kubectl(["-n", NAMESPACE, "delete", "statefulset,events", "--all"]);
  await install("quern.test/absent:1", "0.2", TWO);
  await eventuallySays(QUOTA, 1);
  kubectl(["-n", NAMESPACE, "delete", "deployment,poddisruptionbudget,events", "--all"]);
  kubectl(["-n", NAMESPACE, "delete", "resourcequota", "none"]);
});

it("says that an image cannot be pulled, and waits until all pods are ready", async () => {
  await install("quern.test/absent:1");
  const { stdout } = await eventuallySays(
    /pod quern-0 .*starting \(ImagePullFailed\).*quern\.test\/absent:1/,
    1,
  );
  expect(stdout).toContain("pod quern-0: check the image's name");
  const { code } = await doctor("--wait", "1s");
  expect(code).toBe(124);
  const waiting = doctor("--wait");
  await install("quern.test/quern:1");
  // A StatefulSet does not replace a pod that was never ready.
  kubectl(["-n", NAMESPACE, "delete", "pod", "quern-0"]);
  const ended = await waiting;
  expect([ended.code, ended.stdout]).toEqual([0, expect.stringMatching(/pod quern-0 +ok +ready/)]);
  expect(ended.stderr).toMatch(/pod quern-0: starting \(ImagePullFailed\)[\s\S]*pod quern-0: ready/);
});

it("says no node has a place for a pod, with the scheduler's words", async () => {
  await install("quern.test/quern:1", "100");
  const { stdout } = await eventuallySays(
    /pending \(Unschedulable\): no node has a place for it: 0\/2 nodes .*Insufficient cpu/,
    1,
  );
  expect(stdout).toContain("pod quern-0: add a node, or ask for less compute");
});

it("says what is wrong with the access to the cluster", async () => {
  const token = kubectl(["-n", NAMESPACE, "create", "token", "default"]);
  const config = readFileSync(ADMIN, "utf8");
  const changed = (change: (text: string) => string) => {
    const file = join(directory, "kubeconfig");
    writeFileSync(file, change(config));
    return quern(["doctor", "--namespace", NAMESPACE], file);
  };
  const withToken = (other: string) => changed((text) => text.replace(/token: \w+/, `token: ${other}`));
  const forbidden = await withToken(token);
  expect([forbidden.code, forbidden.stdout]).toEqual([1, expect.stringContaining("cannot list resource")]);
  expect(forbidden.stdout).toContain(`kubectl auth can-i list pods -n ${NAMESPACE}`);
  expect((await withToken("wrong")).stdout).toContain("does not accept the credentials");
  const away = await changed((text) => text.replace(":6443", ":1"));
  expect(away.stdout).toContain("cannot be reached");
  const stranger = await changed((text) =>
    text.replace(/certificate-authority-data: [\w+/=]+/, "tls-server-name: kubernetes"),
  );
  expect(stranger.stdout).toContain("has a certificate that is not trusted");
  const none = await quern(["doctor", "--namespace", NAMESPACE], join(directory, "absent"));
  expect([none.code, none.stderr]).toEqual([
    1,
    expect.stringContaining("name the kubeconfig of your cluster"),
  ]);
  for (const { stdout, stderr } of [forbidden, away, stranger]) expect(stdout + stderr).not.toContain(token);
});
