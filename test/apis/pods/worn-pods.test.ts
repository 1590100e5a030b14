/** When the worn pods of an API go, and what the cluster's Deployment has then. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readConfig } from "../../../src/apis/config/parse-config.ts";
import { ApiObjects } from "../../../src/apis/pods/api-objects.ts";
import { wantedPods } from "../../../src/apis/pods/cluster-view.ts";
import { PodGroup } from "../../../src/apis/pods/pod-group.ts";
import type { PodReplica } from "../../../src/apis/pods/pod-replica.ts";
import { workerPodsOf } from "../../../src/apis/pods/worker-pods-of.ts";
import type { Wear } from "../../../src/apis/pods/worker-wear.ts";
import type { ApiVersion } from "../../../src/apis/records/api-rows.ts";
import { openLog } from "../../../src/base/log.ts";
import { ApiClient } from "../../../src/kubernetes/api-client.ts";
import { WorkerAuthority } from "../../../src/kubernetes/pods/authority.ts";
import type { KubernetesObject } from "../../../src/kubernetes/resources.ts";

let group: PodGroup;
beforeEach(() => {
  const { apis } = readConfig("- name: a\n  predictor: {path: p.py}\n", "quern.yaml");
  const ids = { name: "a", api_id: "v", predictor_id: "p", project_id: "0123456789abcdef01234567" };
  group = new PodGroup({ ...ids, ...apis[0] } as unknown as ApiVersion, undefined);
});

/** A pod whose worker serves; `isReady`: the cluster has seen that. */
function add(name: string, wear: Wear, isReady: boolean): void {
  const replica = { pod: { name, uid: name }, predictor_id: "p", state: "ready", wear, isFirstToGo: false };
  group.replicas.set(name, replica as PodReplica);
  show(name, isReady);
}
function show(name: string, isReady: boolean): void {
  const ready = { type: "Ready", status: isReady ? "True" : "False" };
  const conditions = [{ type: "PodScheduled", status: "True" }, ready];
  group.pods.set(name, { metadata: { name }, status: { phase: "Running", conditions } });
}
const plan = () => ({ extra: group.wear.extra, leavers: group.wear.leavers.map(({ pod }) => pod.name) });

describe("a worn pod", () => {
  it("goes once the cluster counts its successor as ready, too, which is noticed", () => {
    add("worn", "worn", true);
    add("successor", "fresh", false);
    const before = group.face;
    expect(plan()).toEqual({ extra: 1, leavers: [] });
    show("successor", true);
    expect(plan()).toEqual({ extra: 0, leavers: ["worn"] });
    expect(group.face).not.toBe(before);
  });

  it("that the cluster does not count as ready keeps the pod more", () => {
    add("worn", "worn", false);
    add("successor", "fresh", true);
    expect(plan()).toEqual({ extra: 1, leavers: [] });
  });
});

describe("the Deployment of worn pods", () => {
  let server: Server;
  let client: ApiClient;
  let objects: ApiObjects;
  /** The replica counts that were applied. */
  let replicas: number[];
  /** What the next controller takes them for. */
  let wanted: (number | undefined)[];
  let marked: string[];
  let mayMark: boolean;
  let lines: string[];

  beforeEach(async () => {
    [replicas, wanted, marked, mayMark, lines] = [[], [], [], true, []];
    server = createServer(async (request, response) => {
      const text = (await request.toArray()).join("");
      const [status, body] = respond(request.method!, request.url!, text);
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    const access = { server: `http://127.0.0.1:${port}`, ca: undefined, namespace: "ml" };
    client = new ApiClient({ ...access, credentials: async () => ({ token: "token" }) });
    const authority = new WorkerAuthority({ client, namespace: "ml", instanceId: "i" });
    await authority.open();
    const settings = { namespace: "ml", image: "worker:1", url: "https://quern.ml.svc:8423" };
    const deps = {
      ...{ client, authority, namespace: "ml", log: openLog("test") },
      apiLog: (_: string, line: string) => lines.push(line),
      podsOf: (version: ApiVersion, replicas: number, extra: number) =>
        workerPodsOf(version, { replicas, extra }, settings),
      network: { namespace: "ml", server: undefined, databasePort: 5432 },
    };
    objects = new ApiObjects(deps, {
      applied: (_, error) => error && lines.push(error.message),
      removed() {},
    });
  });
  afterEach(() => {
    client.close();
    server.close();
  });

  function respond(method: string, url: string, text: string): [number, object] {
    if (method === "GET" && !url.includes("quern-")) return [200, { items: [] }];
    if (method === "GET") return [404, { reason: "NotFound", message: "not found" }];
    const object = JSON.parse(text) as KubernetesObject & {
      spec?: { replicas?: number };
      stringData?: Record<string, string>;
    };
    const secrets = Object.entries(object.stringData ?? {});
    if (method === "POST")
      return [201, { data: Object.fromEntries(secrets.map(([name, data]) => [name, btoa(data)])) }];
    if (url.includes("/pods/") && !mayMark)
      return [403, { kind: "Status", reason: "Forbidden", message: "no right" }];
    if (url.includes("/pods/")) marked.push(url.split("/").pop()!);
    if (url.includes("/deployments/")) {
      replicas.push(object.spec!.replicas!);
      wanted.push(wantedPods(object));
    }
    return [200, { metadata: { generation: 1 } }];
  }
  const bring = () => objects.bring([group], new Set(["a"]), []);

  it("has one pod more until the worn one may go, and one that ends otherwise leaves none behind", async () => {
    add("worn", "worn", true);
    expect([await bring(), replicas, group.isWearing]).toEqual([true, [2], true]);
    // Its container has ended, and its next worker is not worn.
    add("worn", "fresh", true);
    expect(group.isWearing).toBe(true);
    expect([await bring(), replicas, group.isWearing]).toEqual([true, [2, 1], false]);
    add("worn", "worn", true);
    add("successor", "fresh", true);
    expect([await bring(), marked]).toEqual([true, ["worn"]]);
    expect(wanted).toEqual([1, 1]);
  });

  it("is scaled also if this server may not say which pod goes", async () => {
    mayMark = false;
    add("worn", "worn", true);
    add("successor", "fresh", true);
    expect([await bring(), await bring(), replicas]).toEqual([false, false, [2]]);
    expect(lines).toEqual([
      expect.stringMatching(/^worn pods stay.*no right; apply the output of quern export/),
    ]);
    group.wanted = 3;
    expect([await bring(), replicas]).toEqual([true, [2, 4]]);
    group.wanted = 1;
    mayMark = true;
    expect([await bring(), replicas, marked]).toEqual([true, [2, 4, 1], ["worn"]]);
  });
});
