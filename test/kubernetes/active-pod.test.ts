/** The label of the active server's pod, and changes of the cluster by a server that has lost its database. */
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { processLog } from "../../src/base/log.ts";
import { ACTIVE_LABEL, ActivePod } from "../../src/kubernetes/active-pod.ts";
import { ApiClient } from "../../src/kubernetes/api-client.ts";
import { pathOf } from "../../src/kubernetes/resources.ts";
import { eventually } from "../harness/eventually.ts";

/** The pods that an API server knows, and their labels. */
let pods: Map<string, Record<string, string>>;
let changes: string[];
let requests: number;
/** So many requests are refused first. */
let refusals: number;
/** Changes are not made before it resolves. */
let changing: Promise<void>;
let server: Server;
const closing: { close(): void }[] = [];

beforeEach(async () => {
  pods = new Map(["quern-a", "quern-b"].map((name) => [name, {}]));
  changes = [];
  refusals = 0;
  changing = Promise.resolve();
  requests = 0;
  server = createServer(async (request, response) => {
    const text = await textOf(request);
    requests++;
    if (request.method === "PATCH") await changing;
    const [status, body] = respond(request, text);
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterEach(() => {
  for (const each of closing.splice(0)) each.close();
  server.close();
});

function respond({ method, url }: IncomingMessage, text: string): [number, object] {
  if (refusals-- > 0) return [503, { reason: "ServiceUnavailable", message: "busy" }];
  if (method === "GET") {
    const items = [...pods]
      .filter(([, labels]) => ACTIVE_LABEL in labels)
      .map(([name, labels]) => ({ metadata: { name, labels } }));
    return [200, { items }];
  }
  const name = url!.split("/").pop()!;
  const labels = pods.get(name);
  if (labels === undefined) return [404, { reason: "NotFound", message: `pods "${name}" not found` }];
  const value = (JSON.parse(text) as { metadata: { labels: Record<string, string | null> } }).metadata.labels[
    ACTIVE_LABEL
  ];
  changes.push(`${name} ${value}`);
  if (typeof value === "string") labels[ACTIVE_LABEL] = value;
  else delete labels[ACTIVE_LABEL];
  return [200, { metadata: { name } }];
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const part of request) text += String(part);
  return text;
}

function client(confirmOwner?: () => Promise<void>, onCredentials = () => {}): ApiClient {
  const { port } = server.address() as AddressInfo;
  const access = {
    ...{ server: `http://127.0.0.1:${port}`, ca: undefined, namespace: "ml" },
    credentials: async () => {
      onCredentials();
      return { token: "token" };
    },
  };
  const opened = new ApiClient(access, confirmOwner);
  closing.push(opened);
  return opened;
}

function podOf(name: string, checkMs?: number): ActivePod {
  const pod = new ActivePod({ client: client(), namespace: "ml", pod: name, log: processLog(), checkMs });
  closing.push({ close: () => pod.stop() });
  return pod;
}

const active = () => [...pods].filter(([, labels]) => ACTIVE_LABEL in labels).map(([name]) => name);
const owner = async () => {};

it("is moved by the server that takes the database, also while the API server is busy", async () => {
  podOf("quern-a").take(owner);
  await eventually("the first one has it, and has looked for others", () => active().length === 1);
  expect([active(), requests]).toEqual([["quern-a"], 2]);
  refusals = 2;
  podOf("quern-b").take(owner);
  await eventually("the second one has it alone", () => active().join() === "quern-b");
  // Its own first, so that the Service always has one.
  expect(changes).toEqual(["quern-a true", "quern-b true", "quern-a null"]);
});

it("is given up by a server that waits, and not missed in a pod that is gone", async () => {
  const pod = podOf("quern-a");
  pod.take(owner);
  await eventually("it has it", () => active().join() === "quern-a");
  pod.leave();
  await eventually("it does not have it", () => active().length === 0);
  pods.delete("quern-a");
  pod.leave();
  podOf("quern-b").take(owner);
  await eventually("the other one has it", () => active().join() === "quern-b");
});

it("is not taken by a server that has lost the database, nor by one that waits meanwhile", async () => {
  const pod = podOf("quern-a");
  let asked = 0;
  pod.take(async () => {
    asked++;
    throw new Error("another server has the database");
  });
  await eventually("it asks again", () => asked > 1);
  pod.leave();
  await eventually("it gives it up", () => changes.length === 1);
  expect([changes, active()]).toEqual([["quern-a null"], []]);
});

it("comes back to the active server after a former one's late change, and is removed from others again", async () => {
  podOf("quern-a", 40).take(owner);
  await eventually("it has it", () => active().join() === "quern-a");
  pods.set("quern-a", {});
  pods.set("quern-b", { [ACTIVE_LABEL]: "true" });
  await eventually("it has it again, alone", () => active().join() === "quern-a");
  expect(changes).toEqual(["quern-a true", "quern-a true", "quern-b null"]);
  const read = requests;
  await eventually("it reads on", () => requests > read + 2);
  expect(changes.length).toBe(3);
});

it("is not removed from others by a server that loses the database after it labelled itself", async () => {
  pods.set("quern-b", { [ACTIVE_LABEL]: "true" });
  let asked = 0;
  podOf("quern-a").take(async () => {
    if (asked++ > 0) throw new Error("another server has the database");
  });
  await eventually("it asks again", () => asked > 2);
  expect(changes).toEqual(["quern-a true"]);
});

it("is taken after the server has given it up, however long that takes", async () => {
  let go = () => {};
  changing = new Promise((resolve) => {
    go = resolve;
  });
  const pod = podOf("quern-a");
  pod.leave();
  await eventually("its change waits", () => requests === 1);
  pod.take(owner);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(requests).toBe(1);
  go();
  await eventually("it has it", () => active().join() === "quern-a");
  expect(changes).toEqual(["quern-a null", "quern-a true"]);
});

it("is not taken by a server that has stopped, also if that happens while it asks who has the database", async () => {
  const stopped = podOf("quern-a");
  stopped.stop();
  stopped.take(owner);
  const stopping = podOf("quern-b");
  let hasAsked = false;
  stopping.take(async () => {
    stopping.stop();
    hasAsked = true;
  });
  await eventually("the other one has asked", () => hasAsked);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect([requests, changes]).toEqual([1, []]);
});

it("a server that has lost its database reads, and changes nothing", async () => {
  const lost = client(async () => {
    throw new Error("another server has the database");
  });
  const path = pathOf("Pod", "ml", "quern-a");
  const change = { metadata: { labels: { [ACTIVE_LABEL]: "true" } } };
  for (const work of [
    () => lost.merge(path, change),
    () => lost.apply(path, change),
    () => lost.create(path, change),
    () => lost.remove(path),
  ])
    await expect(work()).rejects.toThrow("another server has the database");
  expect(await lost.get(pathOf("Pod", "ml"))).toEqual({ items: [] });
  expect(changes).toEqual([]);
});

it("a server asks whether it has its database after it has got its credentials, which may take long", async () => {
  const order: string[] = [];
  const asked = client(
    async () => {
      order.push("owner");
    },
    () => order.push("credentials"),
  );
  await asked.merge(pathOf("Pod", "ml", "quern-a"), { metadata: { labels: { [ACTIVE_LABEL]: "true" } } });
  expect([order, changes]).toEqual([["credentials", "owner"], ["quern-a true"]]);
});
