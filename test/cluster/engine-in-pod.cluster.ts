/** The server of `quern export kubernetes --engine kubernetes`: itself a pod, with the rights of its ServiceAccount. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import { Postgres } from "../harness/postgres.ts";
import { WORKER_IMAGE } from "./engine-server.ts";
import { ADDRESS, apply, kubectl } from "./kubectl.ts";
import { Pod } from "./pod.ts";
import { deploySquares, expectExact, jobInTheMiddle } from "./squares.ts";

/** The cluster of the tests has no DNS, so that the Service has an address that is known before. */
const SERVICE = "10.96.84.20";

const pod = new Pod("ml-engine");
let postgres: Postgres;
beforeAll(async () => {
  postgres = await Postgres.start(`-c listen_addresses=127.0.0.1,${ADDRESS}`);
  postgres.admit("10.0.0.0/8");
  pod.prepare();
  const url = postgres.url.replace("127.0.0.1", ADDRESS);
  const metadata = { name: "database", namespace: pod.namespace };
  apply({ apiVersion: "v1", kind: "Secret", metadata, stringData: { url } });
  const options = ["--engine", "kubernetes", "--worker-image", WORKER_IMAGE, "--database-secret", "database"];
  const variable = ["- name: QUERN_POD_URL", `  value: https://${SERVICE}:8423`, "- name: QUERN_ENGINE"];
  await pod.start(options, (yaml) =>
    yaml
      .replace(/^( *)publishNotReadyAddresses: true$/m, `$&\n$1clusterIP: ${SERVICE}`)
      .replace(/^( *)- name: QUERN_ENGINE$/gm, (_, indent) =>
        variable.map((line) => indent + line).join("\n"),
      ),
  );
  deploySquares(pod);
}, 300_000);
afterAll(async () => {
  await pod.end();
  postgres.stop();
}, 180_000);

const workers = () => pod.kubectl(["get", "pods", "-l", "quern.dev/api=echo", "-o", "name"]);

it("serves real-time APIs and jobs in pods of their own", async () => {
  expect(workers()).toMatch(/^pod\/quern-echo-api-\S+$/);
  const response = await pod.predict("echo", { a: 1 });
  expect([response.status, await response.json()]).toEqual([200, { echo: { a: 1 }, user: 1000 }]);
  await expectExact(pod, await jobInTheMiddle(pod));
});

it("finds its workers again after its pod was replaced", async () => {
  const before = workers();
  await pod.replace("--grace-period=0", "--force");
  await eventually(
    "it predicts",
    async () => {
      const response = await pod.predict("echo", 1).catch(() => undefined);
      return response?.status === 200;
    },
    60_000,
  );
  expect(workers()).toBe(before);
});

it("gives predictors no right and no Secret but their own", () => {
  const spec = JSON.parse(pod.kubectl(["get", workers(), "-o", "json"])).spec;
  expect(spec.automountServiceAccountToken).toBe(false);
  const mounted = spec.volumes.flatMap(
    (volume: { secret?: { secretName: string } }) => volume.secret?.secretName ?? [],
  );
  expect(mounted).toEqual(["quern-echo-api"]);
  const account = `system:serviceaccount:${pod.namespace}:default`;
  expect(kubectl(["auth", "can-i", "--list", "--as", account, "-n", pod.namespace])).not.toMatch(
    /secrets|pods/,
  );
});

it("has rights in its namespace only", () => {
  const account = `system:serviceaccount:${pod.namespace}:quern`;
  const rights = (namespace: string) =>
    kubectl(["auth", "can-i", "--list", "--as", account, "-n", namespace]);
  expect(rights(pod.namespace)).toMatch(/deployments\.apps[\s\S]*pods/);
  expect(rights("kube-system")).not.toMatch(/deployments|pods|secrets/);
});
