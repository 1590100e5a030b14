/** How an API's configuration becomes pods. */
import { expect, it } from "vitest";
import { readConfig } from "../../../src/apis/config/parse-config.ts";
import { workerPodsOf } from "../../../src/apis/pods/worker-pods-of.ts";
import type { ApiVersion } from "../../../src/apis/records/api-rows.ts";

const SETTINGS = { namespace: "ml", image: "quern-worker:1", url: "https://quern.ml.svc:8423" };

function podsOf(yaml: string, replicas = 1) {
  const predictor = yaml.includes("predictor") ? "" : "  predictor: {path: p.py}\n";
  const { apis, errors } = readConfig(`- name: a\n${predictor}${yaml}`, "quern.yaml");
  expect(errors).toEqual([]);
  const ids = { name: "a", api_id: "v", predictor_id: "p", project_id: "0123456789abcdef01234567" };
  return workerPodsOf({ ...ids, ...apis[0] } as unknown as ApiVersion, { replicas }, SETTINGS);
}

it("takes the defaults of Quern", () => {
  expect(podsOf("")).toMatchObject({
    ...{ api: "a", predictorId: "p", namespace: "ml", image: "quern-worker:1", replicas: 1 },
    ...{ surge: "25%", unavailable: 0, graceSeconds: 65, cpuMillis: 200, memoryBytes: undefined, gpus: 0 },
    projectUrl: "https://quern.ml.svc:8423/-/projects/0123456789abcdef01234567",
  });
});

it("makes a pod of each process of a replica, which shares its compute", () => {
  const yaml = "  predictor: {path: p.py, processes_per_replica: 2}\n  compute: {cpu: 1, mem: 2Gi, gpu: 2}\n";
  const pods = podsOf(yaml, 3);
  expect(pods).toMatchObject({ replicas: 6, cpuMillis: 500, memoryBytes: 1024 ** 3, gpus: 1 });
});

it("runs where and as compute says", () => {
  const tolerations = "tolerations: [{key: gpu, operator: Exists, toleration_seconds: 5}]";
  const keys = `node_selector: {disk: fast}, image: own:1, service_account: reader, secrets: [keys], ${tolerations}`;
  expect(podsOf(`  compute: {${keys}}\n`)).toMatchObject({
    ...{ nodeSelector: { disk: "fast" }, image: "own:1", serviceAccount: "reader", secrets: ["keys"] },
    tolerations: [{ key: "gpu", operator: "Exists", tolerationSeconds: 5 }],
  });
});

it("rolls out as the configuration says, but always moves", () => {
  expect(podsOf("  update_strategy: {max_surge: 2, max_unavailable: 50%}\n")).toMatchObject({
    surge: 2,
    unavailable: "50%",
  });
  expect(podsOf("  update_strategy: {max_surge: 0}\n")).toMatchObject({ surge: 1, unavailable: 0 });
  expect(podsOf("  update_strategy: {max_surge: 0%, max_unavailable: 1}\n")).toMatchObject({
    surge: "0%",
    unavailable: 1,
  });
});
