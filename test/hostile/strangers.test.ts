/** Callers without a key or with a revoked one: what they can learn, and that they keep no access. */
import { readFileSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { STRANGERS_ASKED_FOR_MAX } from "../../src/contracts/limits/requests.ts";
import { STREAMS_OF_A_KEY_MAX } from "../../src/contracts/limits/responses.ts";
import { archiveOf } from "../harness/archives.ts";
import { eventually } from "../harness/eventually.ts";
import { ECHO, ENDLESS } from "../harness/projects.ts";
import { RawRequests } from "../harness/raw-requests.ts";
import { type Asked, seenAnswer } from "../harness/seen-answer.ts";
import { TestServer } from "../harness/server.ts";

const server = new TestServer();
beforeAll(async () => {
  await server.start();
  server.deploy({
    "quern.yaml": `
- {name: echo, predictor: {path: predictor.py}}
- {name: elsewhere, predictor: {path: predictor.py}, networking: {endpoint: /models/hidden}}
- {name: jobs-elsewhere, kind: BatchAPI, predictor: {path: endless.py}, networking: {endpoint: /models/jobs}}
- {name: open, predictor: {path: predictor.py}, networking: {auth: none}}
- {name: inner, predictor: {path: predictor.py}, networking: {api_gateway: none}}
- {name: inner-jobs, kind: BatchAPI, predictor: {path: predictor.py}, networking: {api_gateway: none}}
- {name: split, kind: TrafficSplitter, apis: [{name: echo, weight: 100}]}
- {name: stream, predictor: {path: endless.py}}
- {name: jobs, kind: BatchAPI, predictor: {path: endless.py}}
`,
    "predictor.py": ECHO,
    "endless.py": ENDLESS,
  });
});
afterAll(() => server.stop());

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const admin = () => bearer(readFileSync(join(server.dataDir, "admin-token"), "utf8").trim());
const create = async (scope: string, api?: string) =>
  (await (await server.post("/-/keys", { scope, api }, admin())).json()) as { id: string; key: string };

describe("an open stream", () => {
  const open: IncomingMessage[] = [];
  afterEach(() => {
    for (const answer of open.splice(0)) answer.destroy();
  });
  /** Its status, the received text, and whether it has ended. */
  const follow = (path: string, key: string, body?: string, accept = "*/*") =>
    new Promise<{ status: number; text: () => string; isOver: () => boolean }>((resolve, reject) => {
      const headers = { ...bearer(key), accept, "content-type": "application/json" };
      const method = body === undefined ? "GET" : "POST";
      const ask = httpRequest(server.baseUrl + path, { method, headers }, (answer) => {
        let text = "";
        let isOver = false;
        open.push(answer);
        answer.setEncoding("utf8").on("data", (part: string) => (text += part));
        answer.on("error", () => {});
        answer.on("close", () => (isOver = true));
        resolve({ status: answer.statusCode!, text: () => text, isOver: () => isOver });
      });
      ask.on("error", reject);
      ask.end(body);
    });
  const submit = async (key: string) => {
    const job = { workers: 1, item_list: { items: [1], batch_size: 1 } };
    const answer = await server.post("/jobs", job, bearer(key));
    return ((await answer.json()) as { job_id: string }).job_id;
  };

  it("of events, logs or a prediction ends when its key is revoked or expires", async () => {
    const own = await create("admin");
    const other = await create("admin");
    const jobId = await submit(own.key);
    const all = (key: string) =>
      Promise.all([
        follow(`/jobs/${jobId}/events`, key, undefined, "text/event-stream"),
        follow(`/jobs/${jobId}/logs?follow=true`, key),
        follow("/-/apis/echo/logs?follow=true", key),
        follow("/-/audit?follow=true", key),
        follow("/stream", key, '{"stream":true}', "text/event-stream"),
      ]);
    const [streams, others] = [await all(own.key), await all(other.key)];
    expect([...streams, ...others].map(({ status }) => status)).toEqual(Array(10).fill(200));
    await eventually("they go on", () => streams[0]!.text() !== "" && streams[4]!.text() !== "");
    await server.fetch(`/-/keys/${own.id}`, { method: "DELETE", headers: bearer(other.key) });
    const since = performance.now();
    await eventually("all of its streams have ended", () => streams.every((stream) => stream.isOver()));
    // The promise is two seconds; a stalled machine may take longer.
    expect(performance.now() - since).toBeLessThan(10_000);
    for (const at of [0, 4])
      expect(streams[at]!.text()).toMatch(/event: error\ndata: .*"code":"unauthorized"/);
    expect(others.map((stream) => stream.isOver())).toEqual(Array(5).fill(false));
    // The same with the end of a key's time.
    await server.post(`/-/keys/${other.id}/rotate`, { grace: "1s" }, admin());
    await eventually("those of the other key too", () => others.every((stream) => stream.isOver()));
  });

  it("is one of at most a hundred for each key", async () => {
    const [own, other] = [await create("admin"), await create("admin")];
    const path = "/-/apis/echo/logs?follow=true";
    const paths = [path, "/-/audit?follow=true"];
    const streams = await Promise.all(
      Array.from({ length: STREAMS_OF_A_KEY_MAX }, (_, n) => follow(paths[n % 2]!, own.key)),
    );
    expect(new Set(streams.map(({ status }) => status))).toEqual(new Set([200]));
    for (const one of paths) {
      const refused = await server.fetch(one, { headers: bearer(own.key) });
      expect([refused.status, await refused.json()]).toEqual([
        429,
        expect.objectContaining({ code: "rate_limited", message: expect.stringContaining("close one") }),
      ]);
    }
    expect((await follow(path, other.key)).status).toBe(200);
    expect((await server.fetch("/-/apis/echo/logs", { headers: bearer(own.key) })).status).toBe(200);
    open.shift()!.destroy();
    await eventually("there is room for another", async () => (await follow(path, own.key)).status === 200);
  });
});

describe("a request whose key is revoked before its body", () => {
  let raw: RawRequests;
  beforeAll(() => {
    raw = new RawRequests(server.baseUrl);
  });
  afterAll(() => raw.close());
  const job = JSON.stringify({ workers: 1, item_list: { items: [1], batch_size: 1 } });
  const archive = archiveOf(
    { path: "config.yaml", body: "- {name: ghost, kind: BatchAPI, predictor: {path: p.py}}" },
    { path: "project/p.py", body: ECHO },
  );
  const bodies: [string, string | Buffer][] = [
    ["/-/keys", '{"scope":"admin"}'],
    ["/-/deploy", archive],
    ["/jobs", job],
    ["/echo", '{"a":1}'],
  ];

  it.each(bodies)("is refused, and recorded in the audit with its key: %s", async (path, body) => {
    const own = await create("admin");
    const head = { ...bearer(own.key), "content-type": "application/json", connection: "close" };
    const length = { "content-length": Buffer.byteLength(body), expect: "100-continue" };
    const request = raw.send(`POST ${path}`, { ...head, ...length });
    // The head was accepted.
    expect([path, await request.firstStatus()]).toEqual([path, "100"]);
    request.socket.write(body.slice(0, 3));
    await server.fetch(`/-/keys/${own.id}`, { method: "DELETE", headers: admin() });
    request.socket.write(body.slice(3));
    await eventually("it is answered", () => /HTTP\/1\.1 [^1]/.test(request.text));
    expect([path, /HTTP\/1\.1 ([^1]\d\d)/.exec(request.text)![1]]).toEqual([path, "401"]);
    expect((await server.fetch("/-/apis/ghost", { headers: admin() })).status).toBe(404);
    const audit = await (await server.fetch(`/-/audit?key=${own.id}`, { headers: admin() })).text();
    if (path.startsWith("/-/")) expect(audit).toContain(`"path":"${path}"`);
  });

  it("is recorded in the audit if it revokes its own key", async () => {
    const own = await create("admin");
    const path = `/-/keys/${own.id}`;
    expect((await server.fetch(path, { method: "DELETE", headers: bearer(own.key) })).status).toBe(200);
    const audit = await (await server.fetch(`/-/audit?key=${own.id}`, { headers: admin() })).text();
    expect(audit).toContain(`"path":"${path}"`);
  });
});

describe("a caller without a key", () => {
  let other: { key: string };
  beforeAll(async () => {
    other = await create("predict", "open");
  });
  const seen = (path: string, asked: Asked) => seenAnswer(server.baseUrl + path, asked);
  const json = { "content-type": "application/json" };
  const origin = { origin: "https://page.example" };
  const ways: [string, Asked][] = [
    ["GET", {}],
    ["HEAD", { method: "HEAD" }],
    ["POST", { method: "POST", headers: json, body: "{}" }],
    ["PUT", { method: "PUT", headers: json, body: "{}" }],
    ["DELETE", { method: "DELETE" }],
    ["OPTIONS", { method: "OPTIONS" }],
    ["a preflight", { method: "OPTIONS", headers: { ...origin, "access-control-request-method": "POST" } }],
    ["POST of another page", { method: "POST", headers: { ...json, ...origin }, body: "{}" }],
    ["POST of what is too large", { method: "POST", headers: { ...json, "content-length": "900000000000" } }],
    [
      "POST that asks first",
      { method: "POST", headers: { ...json, expect: "100-continue", "content-length": "2" }, body: "{}" },
    ],
    ["GET with a wrong key", { headers: { authorization: "Bearer nobody" } }],
    ["POST with a wrong key", { method: "POST", headers: { ...json, "x-api-key": "nobody" }, body: "{}" }],
  ];

  it.each(ways)("gets the same answer for every name: %s", async (_, asked) => {
    const nothing = await seen("/nope", asked);
    const job = "01m81j6mz3rssb1a2hzr0v6yvp";
    const closed = ["/echo", "/models/hidden", "/inner", "/inner-jobs", "/split", "/stream", "/jobs"];
    const below = [
      "/nope/x",
      "/echo/x",
      "/jobs/x",
      `/jobs/${job}`,
      `/jobs/${job}/events`,
      "/jobs/a/b/c",
      "/inner/x",
    ];
    for (const path of [...closed, ...below])
      expect([path, await seen(path, asked)]).toEqual([path, nothing]);
    expect(JSON.stringify(nothing)).not.toMatch(/nope|echo|jobs"/);
  });

  it("makes the gateway ask the controller for only a few names at a time", async () => {
    const requests = new RawRequests(server.baseUrl);
    const goOn = server.freeze("controller");
    try {
      const asked = Array.from({ length: 60 }, (_, i) => requests.send(`GET /guess-${i}`, {}));
      const refused = () => asked.filter(({ text }) => text.startsWith("HTTP/1.1 401")).length;
      await eventually("all but a few are refused", () => refused() >= 60 - STRANGERS_ASKED_FOR_MAX, 5_000);
      expect(refused()).toBe(60 - STRANGERS_ASKED_FOR_MAX);
      goOn();
      await eventually("the others are refused as well", () => refused() === 60);
    } finally {
      goOn();
      requests.close();
    }
  });

  it("gets 401 too for the name of an API with another address; with a key the answer is 404", async () => {
    for (const path of ["/elsewhere", "/jobs-elsewhere", "/jobs-elsewhere/x"]) {
      expect((await server.fetch(path)).status).toBe(401);
      const answer = await server.fetch(path, { headers: admin() });
      expect([path, answer.status, await answer.json()]).toEqual([
        path,
        404,
        expect.objectContaining({ code: "route_not_found" }),
      ]);
      expect((await server.post(path, {}, admin())).status).toBe(404);
    }
    expect((await server.fetch("/models/jobs", { headers: admin() })).status).toBe(200);
    expect((await server.post("/models/hidden", {}, admin())).status).toBe(200);
  });

  it("reaches open APIs; callers with a key get 404 for missing ones", async () => {
    expect((await server.post("/open", { a: 1 })).status).toBe(200);
    const own = bearer(other.key);
    expect((await server.post("/nope", {}, own)).status).toBe(404);
    expect((await server.post("/echo", {}, own)).status).toBe(403);
    expect((await server.fetch("/echo", { method: "PUT", headers: admin() })).status).toBe(405);
    const split = await server.post("/split", {}, admin());
    expect([split.status, split.headers.get("x-quern-api")]).toEqual([200, "echo"]);
  });
});
