/** List-and-watch against a real API server, through a proxy that does what networks and busy API servers do. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { ApiClient } from "../../src/kubernetes/api-client.ts";
import { ListAndWatch } from "../../src/kubernetes/list-and-watch.ts";
import { WATCH_TIMING } from "../../src/kubernetes/next-watch.ts";
import { type KubernetesObject, pathOf } from "../../src/kubernetes/resources.ts";
import { eventually } from "../harness/eventually.ts";
import { FaultyApiServer } from "../harness/faulty-api-server.ts";
import { seeded } from "../harness/random.ts";
import { adminAccess, adminClient } from "./cluster-client.ts";
import { kubectl } from "./kubectl.ts";

interface ConfigMap extends KubernetesObject {
  data?: Record<string, string>;
}

const NAMESPACE = "watched";
/** More than one page. */
const OBJECTS = 450;
/** So many changes are made at the same time. */
const LANES = 4;
/** Changes go on until the watch has made so many requests, nearly all of which met a fault. */
const REQUESTS = 25;
const TIMING = {
  ...WATCH_TIMING,
  firstPauseMs: 20,
  longestPauseMs: 500,
  healthyMs: 1_000,
  silentMaxMs: 800,
};
const client = adminClient();
const path = pathOf("ConfigMap", NAMESPACE);
const labelSelector = "app=watched";

beforeAll(async () => {
  kubectl(["create", "namespace", NAMESPACE]);
  for (let i = 0; i < OBJECTS; i += 10)
    await Promise.all(Array.from({ length: 10 }, (_, j) => put(i + j, 0)));
});
afterAll(() => {
  kubectl(["delete", "namespace", NAMESPACE, "--timeout=120s"]);
  client.close();
});

function put(number: number, value: number): Promise<unknown> {
  const name = `object-${number}`;
  const labels = { app: "watched" };
  const data = { value: String(value), filling: "x".repeat(300) };
  const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name, labels }, data };
  return client.apply(pathOf("ConfigMap", NAMESPACE, name), object);
}

/** Changes, adds and removes objects at random. */
async function churn(random: () => number, changes: number): Promise<void> {
  for (let i = 0; i < changes; i++) {
    const number = Math.floor(random() * OBJECTS * 1.2);
    if (random() < 0.3) await client.remove(pathOf("ConfigMap", NAMESPACE, `object-${number}`));
    else await put(number, i + 1);
  }
}

const shown = (objects: Iterable<ConfigMap>) =>
  [...objects]
    .map(({ metadata, data }) => `${metadata.name} ${metadata.resourceVersion} ${data?.value}`)
    .sort();

async function truth(): Promise<string[]> {
  return shown((await client.get<{ items: ConfigMap[] }>(path, { labelSelector })).items);
}

/** A watch through a proxy, and what its owner was told. */
async function watchThrough(proxy: FaultyApiServer) {
  const told = new Map<string, ConfigMap>();
  const failures: string[] = [];
  const through = new ApiClient(await proxy.open());
  const watch = new ListAndWatch<ConfigMap>({
    ...{ client: through, path, labelSelector, timing: TIMING },
    onChange: (name, object) => void (object === undefined ? told.delete(name) : told.set(name, object)),
    onFailure: ({ message }) => failures.push(message),
  });
  await watch.start();
  const close = async () => {
    await watch.stop();
    through.close();
    proxy.close();
  };
  return { watch, told, failures, close };
}

it.each([1, 2, 3])("shows the truth in the end, whatever happens to its requests (seed %i)", async (seed) => {
  const random = seeded(seed);
  const proxy = new FaultyApiServer(adminAccess(), random);
  const { watch, told, close } = await watchThrough(proxy);
  const beganMs = performance.now();
  while (proxy.requests < REQUESTS) await Promise.all(Array.from({ length: LANES }, () => churn(random, 10)));
  const tookSeconds = (performance.now() - beganMs) / 1_000;
  const requests = proxy.requests;
  proxy.calm();
  const expected = await truth();
  await eventually(
    "the view is the truth",
    () => shown(watch.view.values()).join() === expected.join(),
    20_000,
  );
  expect(shown(told.values())).toEqual(expected);
  // A pause before each, except between the pages of a list and the watch after them.
  expect(requests).toBeLessThan(REQUESTS + 30 * tookSeconds);
  expect(proxy.seen.size, JSON.stringify([...proxy.seen])).toBeGreaterThan(3);
  await close();
});

it("notices a watch that went silent, and catches up without a new list", async () => {
  const proxy = new FaultyApiServer(adminAccess(), () => 0.99);
  proxy.calm();
  const { watch, failures, close } = await watchThrough(proxy);
  await watch.listed;
  const before = proxy.requests;
  await eventually("the silence is noticed", () =>
    failures.some((text) => text.includes("was silent for 800 ms")),
  );
  await put(0, 77_777);
  await eventually("the change is seen", () => watch.view.get("object-0")?.data?.value === "77777");
  // One list of three pages came first.
  expect(before).toBeLessThanOrEqual(4);
  expect(proxy.requests - before).toBeLessThan(10);
  await close();
});

it("lists again after the version that it had was compacted away", async () => {
  const proxy = new FaultyApiServer(adminAccess(), () => 0);
  proxy.calm();
  const { watch, close } = await watchThrough(proxy);
  await watch.listed;
  await put(1, 88_888);
  await eventually("the change is seen", () => watch.view.get("object-1")?.data?.value === "88888");
  // The proxy says that the version is too old, as an API server does after five minutes without contact.
  proxy.expireNext();
  proxy.cutAll();
  await client.remove(pathOf("ConfigMap", NAMESPACE, "object-1"));
  await eventually("the removal is seen", () => !watch.view.has("object-1"));
  expect(proxy.seen.get("expired event")).toBe(1);
  await close();
});

it("keeps a person's labels, and takes its own fields back", async () => {
  const name = "applied";
  const own = (value: string) => ({
    ...{ apiVersion: "v1", kind: "ConfigMap", metadata: { name, labels: { app: "quern" } } },
    data: { value },
  });
  await client.apply(pathOf("ConfigMap", NAMESPACE, name), own("1"));
  kubectl(["-n", NAMESPACE, "label", "configmap", name, "team=ml", "app=mine", "--overwrite"]);
  const applied = await client.apply<ConfigMap>(pathOf("ConfigMap", NAMESPACE, name), own("2"));
  expect([applied.metadata.labels, applied.data]).toEqual([{ app: "quern", team: "ml" }, { value: "2" }]);
  const wrong = { ...own("3"), dta: {} };
  await expect(client.apply(pathOf("ConfigMap", NAMESPACE, name), wrong)).rejects.toThrow("dta");
});

it("removes an object only if it still is the one that was meant", async () => {
  const name = "object-2";
  await put(2, 1);
  await client.remove(pathOf("ConfigMap", NAMESPACE, name), "00000000-0000-0000-0000-000000000000");
  const { metadata } = await client.get<ConfigMap>(pathOf("ConfigMap", NAMESPACE, name));
  await client.remove(pathOf("ConfigMap", NAMESPACE, name), metadata.uid);
  await client.remove(pathOf("ConfigMap", NAMESPACE, name), metadata.uid);
  await expect(client.get(pathOf("ConfigMap", NAMESPACE, name))).rejects.toMatchObject({ status: 404 });
});
