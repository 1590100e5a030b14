/** Sessions of browsers (docs/contract/access.md#sessions), over real HTTP. */
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { killAll } from "../../harness/processes.ts";
import { TestServer } from "../../harness/server.ts";

const PREDICTOR = `
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload, headers):
        return {"cookie": headers.get("cookie"), "names": sorted(headers)}
`;
const PASSING = { pass_credentials: true };
const CONFIG = JSON.stringify([
  { name: "plain", predictor: { path: "p.py" } },
  { name: "passing", predictor: { path: "p.py", ...PASSING } },
  { name: "open", predictor: { path: "p.py", ...PASSING }, networking: { auth: "none" } },
  { name: "jobs", kind: "BatchAPI", predictor: { path: "b.py" } },
]);
const BATCH =
  "class PythonPredictor:\n    def __init__(self, config): pass\n    def predict(self, payload): pass\n";
const HOUR_MS = 3_600_000;
const PAGE = { "x-quern-dashboard": "1" };

const server = new TestServer();
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const adminToken = () => readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
const create = async (scope: string, name?: string) => {
  const response = await server.post("/-/keys", { scope, name }, bearer(adminToken()));
  return (await response.json()) as { id: string; key: string };
};
const tokenOf = (response: Response) =>
  /^quern_session=([\w-]{43});/.exec(response.headers.get("set-cookie") ?? "")?.[1] ?? "";
/** The headers with which a page of the dashboard sends requests. */
const page = (token: string) => ({ cookie: `quern_session=${token}`, ...PAGE });
const signIn = async (key: string) => tokenOf(await server.post("/-/session", { key }));
const statusOf = async (path: string, headers: Record<string, string>) =>
  (await server.fetch(path, { headers })).status;
const problemOf = async (response: Response) =>
  [response.status, ((await response.json()) as { message: string }).message] as const;

beforeAll(async () => {
  await server.start({}, ["--gateways", "2"]);
  // The first key closes the APIs.
  await create("predict");
  server.deploy({ "quern.yaml": CONFIG, "p.py": PREDICTOR, "b.py": BATCH });
});
afterAll(() => server.stop());

describe("a sign-in", () => {
  it("with a key sets a cookie that no script reads and no other site sends, for twelve hours", async () => {
    const { key } = await create("view", "ada");
    const response = await server.post("/-/session", { key });
    const body = (await response.json()) as { scope: string; name: string; expires_time: string };
    expect([response.status, body.scope, body.name]).toEqual([201, "view", "ada"]);
    const leftMs = Date.parse(body.expires_time) - Date.now();
    expect([leftMs > 11.9 * HOUR_MS, leftMs <= 12 * HOUR_MS]).toEqual([true, true]);
    expect(response.headers.get("set-cookie")).toMatch(
      /^quern_session=[\w-]{43}; Path=\/; Max-Age=43\d\d\d; HttpOnly; SameSite=Strict$/,
    );
    expect(response.headers.get("cache-control")).toBe("no-store");
  });

  it.each(["predict", "submit"])("with a key of the scope %s is refused, with the cure", async (scope) => {
    const response = await server.post("/-/session", { key: (await create(scope)).key });
    const [status, message] = await problemOf(response);
    expect([status, response.headers.get("set-cookie")]).toEqual([403, null]);
    expect(message).toContain(`the key's scope is ${scope}; the control plane needs view`);
  });

  it.each([
    [{ key: "quern_nobodyknowsthiskey" }, 401, "the key is unknown"],
    [{ code: "nobodyknowsthiscode" }, 401, "the code is unknown, was used, or is older than a minute"],
    [{}, 400, "send a key or a code"],
    [{ key: "a", code: "b" }, 400, "send a key or a code"],
    [{ key: "a".repeat(2000) }, 413, "must be smaller than 2000 bytes"],
  ])("with %j is refused", async (body, status, message) => {
    const response = await server.post("/-/session", body);
    const [got, text] = await problemOf(response);
    expect([got, response.headers.get("set-cookie")]).toEqual([status, null]);
    expect(text).toContain(message);
  });

  it("with a code works once", async () => {
    const { id, key } = await create("admin", "coder");
    const made = await server.post("/-/session/codes", {}, bearer(key));
    const { code, url, expires_time } = (await made.json()) as Record<string, string>;
    expect([made.status, url]).toEqual([201, `${server.baseUrl}/-/ui/#code=${code}`]);
    expect(Date.parse(expires_time!) - Date.now()).toBeLessThanOrEqual(60_000);
    const first = await server.post("/-/session", { code });
    expect([first.status, await first.json()]).toMatchObject([201, { scope: "admin", name: "coder" }]);
    expect((await server.post("/-/session", { code })).status).toBe(401);
    expect(await statusOf("/-/keys", page(tokenOf(first)))).toBe(200);
    const second = (await (await server.post("/-/session/codes", {}, bearer(key))).json()) as typeof made;
    await server.fetch(`/-/keys/${id}`, { method: "DELETE", headers: bearer(adminToken()) });
    expect(
      (await server.post("/-/session", { code: (second as unknown as { code: string }).code })).status,
    ).toBe(401);
  });

  it("of a key that signs in too often is refused, with the time to wait", async () => {
    const { key } = await create("view");
    const statuses: number[] = [];
    for (let count = 0; count < 60; count++) statuses.push((await server.post("/-/session", { key })).status);
    expect(statuses).toEqual(Array(60).fill(201));
    const refused = await server.post("/-/session", { key });
    expect(refused.status).toBe(429);
    const waitS = Number(refused.headers.get("retry-after"));
    expect([waitS >= 1, waitS <= 60]).toEqual([true, true]);
    expect((await server.post("/-/session", { key: adminToken() })).status).toBe(201);
  });

  it("from a page of another origin is refused, as a form or with a session", async () => {
    const token = await signIn(adminToken());
    const evil = { origin: "https://evil.example" };
    const form = await server.fetch("/-/session", {
      method: "POST",
      body: JSON.stringify({ key: adminToken() }),
      headers: { ...evil, "content-type": "text/plain" },
    });
    expect([form.status, form.headers.get("set-cookie")]).toEqual([403, null]);
    const changes = [
      ["POST", "/-/session/codes"],
      ["DELETE", "/-/session"],
      ["POST", "/-/apis/plain/refresh"],
      ["POST", "/plain"],
    ] as const;
    for (const [method, path] of changes) {
      const headers = { ...page(token), ...evil, "content-type": "application/json" };
      const refused = await server.fetch(path, {
        method,
        headers,
        ...(method === "POST" ? { body: "1" } : {}),
      });
      expect([path, refused.status]).toEqual([path, 403]);
    }
    const own = await server.post("/plain", 1, { ...page(token), origin: server.baseUrl });
    expect([own.status, await statusOf("/-/version", page(token))]).toEqual([200, 200]);
  });
});

describe("a session", () => {
  it("is nothing without the header of the dashboard", async () => {
    const token = await signIn(adminToken());
    const { cookie } = page(token);
    expect(await statusOf("/-/version", page(token))).toBe(200);
    const without: Record<string, string>[] = [{ cookie }, { cookie, "x-quern-dashboard": "0" }];
    for (const headers of without) {
      expect(await statusOf("/-/version", headers)).toBe(401);
      expect((await server.post("/plain", 1, headers)).status).toBe(401);
      expect((await server.post("/jobs", {}, headers)).status).toBe(401);
    }
  });

  it("that is unknown is as none", async () => {
    const unknown = page("x".repeat(43));
    const [status, message] = await problemOf(await server.fetch("/-/version", { headers: unknown }));
    expect([status, message]).toEqual([401, expect.stringMatching(/^the control plane needs a key;/)]);
    const session = await server.fetch("/-/session", { headers: unknown });
    expect(await session.json()).toEqual({ scope: null, name: null, expires_time: null });
    expect((await server.post("/open", 1, unknown)).status).toBe(200);
    const both = { ...bearer(adminToken()), ...unknown };
    expect(await statusOf("/-/version", both)).toBe(200);
  });

  it("is good in a cookie only", async () => {
    const token = await signIn(adminToken());
    expect(await statusOf("/-/version", { ...bearer(token), ...PAGE })).toBe(401);
    expect(await statusOf("/-/version", { "x-api-key": token, ...PAGE })).toBe(401);
    expect((await server.post("/-/session", { key: `session\n${token}` })).status).toBe(401);
    expect((await server.post("/-/session", { key: token })).status).toBe(401);
  });

  it("says who is signed in", async () => {
    const { key } = await create("view", "grace");
    const token = await signIn(key);
    const session = await (await server.fetch("/-/session", { headers: page(token) })).json();
    expect(session).toEqual({
      ...{ scope: "view", name: "grace" },
      expires_time: expect.stringMatching(/^2.*Z$/),
    });
    const nobody = await server.fetch("/-/session");
    expect([nobody.status, ((await nobody.json()) as { scope: null }).scope]).toEqual([200, null]);
  });

  it("of a view key reads and changes nothing; of an admin key it acts", async () => {
    const view = page(await signIn((await create("view")).key));
    const admin = page(await signIn(adminToken()));
    expect(await statusOf("/-/apis", view)).toBe(200);
    expect(await statusOf("/-/keys", view)).toBe(403);
    for (const path of ["/-/apis/plain/refresh", "/-/keys", "/-/jobs/unpause", "/plain"])
      expect([path, (await server.post(path, { scope: "view" }, view)).status]).toEqual([path, 403]);
    expect((await server.post("/-/keys", { scope: "predict" }, admin)).status).toBe(200);
    const job = { workers: 1, item_list: { items: [1], batch_size: 1 } };
    expect((await server.post("/jobs", job, view)).status).toBe(403);
    const submitted = await server.post("/jobs", job, admin);
    const { job_id } = (await submitted.json()) as { job_id: string };
    await eventually("the job ends", async () => {
      const response = await server.fetch(`/jobs/${job_id}`, { headers: view });
      return (
        ((await response.json()) as { job_status: { end_time?: string } }).job_status.end_time !== undefined
      );
    });
  });

  it("makes no code: it would outlive its twelve hours", async () => {
    const response = await server.post("/-/session/codes", {}, page(await signIn(adminToken())));
    expect(await problemOf(response)).toEqual([403, expect.stringContaining("only a key makes a code")]);
  });

  it.each(["plain", "passing", "open"])("is never sent to the predictor of %s", async (api) => {
    const token = await signIn(adminToken());
    const cookies = `a=1; quern_session=${token}; b=2`;
    const response = await server.post(`/${api}`, 1, { ...PAGE, cookie: cookies });
    const { cookie, names } = (await response.json()) as { cookie: string | null; names: string[] };
    expect([response.status, cookie]).toEqual([200, api === "plain" ? null : "a=1; b=2"]);
    expect(names.includes("cookie")).toBe(api !== "plain");
    const alone = await server.post(`/${api}`, 1, page(token));
    expect(((await alone.json()) as { cookie: string | null }).cookie).toBe(null);
  });

  it("opens predictions on every gateway as soon as the sign-in returns, and none after the sign-out", async () => {
    const token = await signIn(adminToken());
    const all = (status: number) =>
      Promise.all(
        Array.from({ length: 12 }, async () => {
          const headers = { ...page(token), connection: "close" };
          expect((await server.post("/plain", 1, headers)).status).toBe(status);
        }),
      );
    await all(200);
    const out = await server.fetch("/-/session", { method: "DELETE", headers: page(token) });
    expect([out.status, out.headers.get("set-cookie")]).toEqual([
      200,
      "quern_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict",
    ]);
    await all(401);
    expect(await statusOf("/-/version", page(token))).toBe(401);
    expect((await server.fetch("/-/session", { method: "DELETE" })).status).toBe(200);
  });

  it("survives a kill of the controller, and a restart of the server", async () => {
    const token = await signIn(adminToken());
    killAll([server.child("controller")]);
    await eventually(
      "the session is known again",
      async () => (await statusOf("/-/version", page(token))) === 200,
    );
    await server.stopProcesses();
    await server.start({}, ["--gateways", "2"]);
    expect(await statusOf("/-/version", page(token))).toBe(200);
    await eventually(
      "the API serves",
      async () => (await server.post("/plain", 1, page(token))).status === 200,
    );
  });
});

describe("the end of a key", () => {
  it("by revocation ends its sessions on every gateway at once, and their streams soon", async () => {
    const { id, key } = await create("admin");
    const token = await signIn(key);
    const other = await signIn(adminToken());
    const stream = await server.fetch("/-/audit?follow=true", { headers: page(token) });
    expect(stream.status).toBe(200);
    const ended = stream.text().catch(() => "cut off");
    await server.fetch(`/-/keys/${id}`, { method: "DELETE", headers: bearer(adminToken()) });
    const statuses = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const headers = { ...page(token), connection: "close" };
        return [(await server.post("/plain", 1, headers)).status, await statusOf("/-/version", headers)];
      }),
    );
    expect(statuses.flat().every((status) => status === 401)).toBe(true);
    await ended;
    expect(await statusOf("/-/version", page(other))).toBe(200);
  });

  it("by expiry ends its sessions, which end with it and not after twelve hours", async () => {
    const response = await server.post("/-/keys", { scope: "view", expires_in: "3s" }, bearer(adminToken()));
    const { key } = (await response.json()) as { key: string };
    const signed = await server.post("/-/session", { key });
    const { expires_time } = (await signed.json()) as { expires_time: string };
    expect(Date.parse(expires_time) - Date.now()).toBeLessThan(3_000);
    const headers = page(tokenOf(signed));
    await eventually("it ends", async () => (await statusOf("/-/version", headers)) === 401);
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expires_time));
  });

  it("by a rotation of the admin token ends the sessions of the former one", async () => {
    const token = await signIn(adminToken());
    await server.post("/-/keys/admin/rotate", {}, bearer(adminToken()));
    expect(await statusOf("/-/version", page(token))).toBe(401);
    expect(await statusOf("/-/version", page(await signIn(adminToken())))).toBe(200);
  });

  it("ends no session of others; the twenty-first of a key ends its first", async () => {
    const { key } = await create("view");
    const tokens: string[] = [];
    for (let count = 0; count < 21; count++) tokens.push(await signIn(key));
    const statuses = await Promise.all(tokens.map((token) => statusOf("/-/version", page(token))));
    expect(statuses).toEqual([401, ...Array(20).fill(200)]);
  });
});

describe("the audit", () => {
  it("says who signed in and how, and names the key in what a session does", async () => {
    const { id, key } = await create("admin", "lovelace");
    const token = await signIn(key);
    await server.post("/-/apis/plain/refresh", {}, page(token));
    const lines = server.cli(["audit", "--key", id, "-o", "json"]).out.trim().split("\n");
    const done = lines.map((line) => JSON.parse(line) as Record<string, string>);
    expect(done).toMatchObject([
      { path: "/-/session", by: id, by_name: "lovelace", scope: "admin", what: "signed in with the key" },
      { path: "/-/apis/plain/refresh", by: id, by_name: "lovelace", scope: "admin" },
    ]);
    expect(lines.join("")).not.toContain(token);
  });

  it("has no line for what changes nothing: a sign-out without a session, a verification", async () => {
    const { id, key } = await create("view");
    const job = { workers: 1, item_list: { items: [1], batch_size: 1 } };
    const submitted = await server.post("/jobs", job, bearer(adminToken()));
    const { job_id } = (await submitted.json()) as { job_id: string };
    const signedOut = await server.fetch("/-/session", { method: "DELETE", headers: bearer(key) });
    const verified = await server.post(`/jobs/${job_id}/verify`, {}, bearer(key));
    expect([signedOut.status, verified.status]).toEqual([200, 404]);
    expect(server.cli(["audit", "--key", id, "-o", "json"]).out.trim()).toBe("");
  });

  it("has at most sixty codes of a key in a minute, so that they push out no lines of others", async () => {
    const { key } = await create("view");
    const statuses: number[] = [];
    for (let n = 0; n < 61; n++)
      statuses.push((await server.post("/-/session/codes", {}, bearer(key))).status);
    expect(statuses).toEqual([...Array(60).fill(201), 429]);
  });

  it("has 499 for a change whose client left, as the access log has, and no line for such a sign-in", async () => {
    const { hostname, port } = new URL(server.baseUrl);
    const begin = (path: string, headers: string) => {
      const socket = connect(Number(port), hostname);
      const head = `POST ${path} HTTP/1.1\r\nhost: ${hostname}:${port}\r\ncontent-type: application/json\r\n${headers}`;
      socket.write(`${head}content-length: 100\r\n\r\n{`);
      return socket;
    };
    const sockets = [
      begin("/-/session", ""),
      begin("/-/keys", `authorization: ${bearer(adminToken()).authorization}\r\n`),
    ];
    await new Promise((resolve) => setTimeout(resolve, 300));
    for (const socket of sockets) socket.destroy();
    await eventually("it is in the audit", () => /POST \/-\/keys 499/.test(server.cli(["audit"]).out));
    expect(server.cli(["audit"]).out).not.toMatch(/POST \/-\/session (499|500)/);
  });

  it("has a line for a sign-in that was refused, without the key", () => {
    const { out } = server.cli(["audit"]);
    expect(out).toMatch(/ - 127\.0\.0\.1 POST \/-\/session 401/);
    expect(out).not.toContain("nobodyknowsthis");
  });
});
