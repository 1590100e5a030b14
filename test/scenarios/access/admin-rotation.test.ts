/** Replacing the admin token while the server runs (docs/contract/access.md#admin-token-rotation). */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { TestServer } from "../../harness/server.ts";

/** The promise is two seconds; a stalled machine may take longer. */
const STREAM_END_MS = 10_000;
const server = new TestServer({ QUERN_GATEWAYS: "2" });
const file = () => join(server.dataDir, "admin-token");
const token = () => readFileSync(file(), "utf8").trim();
const bearer = (key: string) => ({ authorization: `Bearer ${key}`, connection: "close" });
const statusWith = async (key: string) => (await server.fetch("/-/version", { headers: bearer(key) })).status;
/** By several connections, so that each gateway is asked. */
const statusesWith = async (key: string) => {
  const statuses = await Promise.all(Array.from({ length: 8 }, () => statusWith(key)));
  return [...new Set(statuses)];
};

beforeAll(() => server.start());
afterAll(() => server.stop());

it("ends the former token on every gateway before the response, and its streams soon after", async () => {
  const former = token();
  const stream = await server.fetch("/-/audit?follow=true", { headers: bearer(former) });
  const ended = stream.text().catch(() => "cut off");
  const { code, out, err } = await server.cliBeside(["keys", "rotate", "admin"]);
  const rotatedMs = performance.now();
  expect([code, err]).toEqual([
    0,
    "the new admin token; it is also in admin-token in the server's data directory\n",
  ]);
  expect(await statusesWith(former)).toEqual([401]);
  await ended;
  expect(performance.now() - rotatedMs).toBeLessThan(STREAM_END_MS);
  expect([out, statSync(file()).mode & 0o777]).toEqual([`${token()}\n`, 0o600]);
  expect(token()).not.toBe(former);
  expect(await statusesWith(token())).toEqual([200]);
  // The command line finds the new token, and the server proves that it knows it.
  expect((await server.cliBeside(["get"])).code).toBe(0);
  expect((await server.cliBeside(["keys", "list"])).out).toContain("no keys: anyone");
  expect((await server.cliBeside(["audit"])).out).toContain(
    "admin-token 127.0.0.1 POST /-/keys/admin/rotate 200 admin-token (admin)\n",
  );
});

it("survives a kill of the controller and of the gateways", async () => {
  const former = token();
  const { key } = JSON.parse((await server.cliBeside(["keys", "rotate", "admin", "-o", "json"])).out) as {
    key: string;
  };
  for (const role of ["controller", "gateway"] as const) process.kill(server.child(role), "SIGKILL");
  await eventually(
    "the new token opens the control plane",
    async () => (await statusWith(key).catch(() => 0)) === 200,
    30_000,
  );
  // The other gateway's connections may end with it.
  await eventually(
    "the former one is refused",
    async () => (await statusWith(former).catch(() => 0)) === 401,
  );
});

it("leaves the former token valid for the grace, also across a restart", async () => {
  const former = token();
  expect((await server.cliBeside(["keys", "rotate", "admin", "--grace", "10m"])).code).toBe(0);
  expect(await statusesWith(former)).toEqual([200]);
  await server.stopProcesses();
  await server.start();
  expect([await statusesWith(former), await statusesWith(token())]).toEqual([[200], [200]]);
  const second = token();
  expect((await server.cliBeside(["keys", "rotate", "admin", "--grace", "1s"])).code).toBe(0);
  expect(await statusesWith(former)).toEqual([401]);
  await eventually("its grace is over", async () => (await statusWith(second)) === 401);
  expect(await statusWith(token())).toBe(200);
});

it("is refused to a key that is not an administrator's, and leaves the token as it is", async () => {
  const former = token();
  const view = (await server.cliBeside(["keys", "create", "--scope", "view"])).out.trim();
  const response = await server.post("/-/keys/admin/rotate", "{}", bearer(view));
  expect([response.status, token()]).toEqual([403, former]);
});
