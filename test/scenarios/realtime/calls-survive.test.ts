/** Calls of user code to other APIs (QUERN_API_URL) while processes of the server die or stop. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { callers } from "../../harness/callers.ts";
import { eventually } from "../../harness/eventually.ts";
import { TestServer } from "../../harness/server.ts";

const server = new TestServer();
beforeAll(async () => {
  await server.start({}, ["--gateways", "2"]);
  server.deploy(callers(join(server.dir, "later.json")));
}, 120_000);
afterAll(() => server.stop(), 90_000);

interface Answer {
  status: number;
  body: unknown;
}

const tell = async <T>(item: object): Promise<T> => {
  const response = await server.post("/caller", item);
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  return (await response.json()) as T;
};
const inner = { call: "/inner", body: 1 };
const works = async () => (await tell<Answer>(inner).catch(() => undefined))?.status === 200;
const facts = async () => {
  const { QUERN_API_URL: url } = await tell<Record<string, string>>({ do: "env" });
  return { url: url!, pid: await tell<number>({ do: "pid" }) };
};

it("calls continue when a controller, a gateway or everything except the workers dies", async () => {
  const before = await facts();
  for (const role of ["controller", "gateway"] as const) {
    const former = server.child(role);
    process.kill(former, "SIGKILL");
    await eventually("it works again", works);
    expect(await facts()).toEqual(before);
  }
  // Unanswered requests of a previous gateway do not keep the port from the next one.
  const [begun, end] = ["held", "end"].map((name) => join(server.dir, name)) as [string, string];
  const held = server.post("/caller", { touch: begun, await: end }, { connection: "close" });
  await eventually("it is at work", () => existsSync(begun));
  const gone = new Promise((resolve) => server.parent!.once("exit", resolve));
  server.parent!.kill("SIGKILL");
  await gone;
  await server.start({}, ["--gateways", "2"]);
  await eventually("it works again", works);
  expect(await facts()).toEqual(before);
  writeFileSync(end, "");
  expect((await held).status).toBe(200);
}, 90_000);

it("a request that needs another API finishes while the server stops", async () => {
  const [begun, free, go] = ["begun", "free", "go"].map((name) => join(server.dir, name)) as [
    ...[string, string, string],
  ];
  const asked = tell<Answer>({ ...inner, touch: begun, await: go });
  const items = [{ ...inner, touch: free, await: go, write: join(server.dir, "job.json") }];
  const job = await server.submit("jobs", { workers: 1, item_list: { items, batch_size: 1 } });
  await eventually("both are at work", () => existsSync(begun) && existsSync(free));
  const exited = new Promise((resolve) => server.parent!.once("exit", resolve));
  server.parent!.kill("SIGTERM");
  await eventually("it takes no more requests", () =>
    fetch(`${server.baseUrl}/-/livez`, { headers: { connection: "close" } }).then(
      () => false,
      () => true,
    ),
  );
  writeFileSync(go, "");
  expect(await asked).toMatchObject({ status: 200, body: { inner: 1 } });
  await exited;
  await server.start({}, ["--gateways", "2"]);
  expect(await server.ended("jobs", job)).toMatchObject({
    status: "status_succeeded",
    batch_metrics: { failed: 0 },
  });
}, 120_000);

it("workers are replaced if another program takes their address, and stolen capabilities are refused", async () => {
  await eventually("it works", works);
  const before = await facts();
  const { port, pathname } = new URL(before.url);
  const gone = new Promise((resolve) => server.parent!.once("exit", resolve));
  server.parent!.kill("SIGKILL");
  await gone;
  const other = createServer((socket) => socket.destroy());
  await eventually(
    "another program has the port",
    () =>
      new Promise<boolean>((resolve) => {
        other.once("error", () => resolve(false)).listen(Number(port), "127.0.0.1", () => resolve(true));
      }),
  );
  await server.start({}, ["--gateways", "2"]);
  const now = Number(readFileSync(join(server.dataDir, "api-port"), "utf8"));
  expect(now).not.toBe(Number(port));
  const told = await fetch(`http://127.0.0.1:${now}${pathname}/inner`, { method: "POST", body: "1" });
  expect(told.status).toBe(401);
  await eventually("another worker has another address", async () => {
    const after = await facts().catch(() => before);
    return after.url !== before.url && new URL(after.url).port === String(now) && (await works());
  });
  other.close();
}, 120_000);
