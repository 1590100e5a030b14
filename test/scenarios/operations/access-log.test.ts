/** docs/contract/operations.md#access-log */
import { existsSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { RawRequest } from "../../harness/raw-requests.ts";
import { TestServer } from "../../harness/server.ts";

const PREDICTOR = `
import time
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        if payload.get("begun"):
            open(payload["begun"], "w").close()
            time.sleep(1)
        if payload.get("bad"): raise ValueError("bad")
        return {"echo": payload}
`;

const server = new TestServer();
const file = join(server.dataDir, "logs", "access.log");
beforeAll(() => server.start());
afterAll(() => server.stop());

const lines = () =>
  (existsSync(file) ? readFileSync(file, "utf8") : "")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
const lineOf = async (id: string) => {
  await eventually(`a line of ${id}`, () => lines().some(({ request_id }) => request_id === id));
  return lines().find(({ request_id }) => request_id === id)!;
};
const send = (payload: unknown, id: string, headers: Record<string, string> = {}) =>
  server.post("/x", payload, { "x-request-id": id, ...headers });

it("there is none by default", async () => {
  server.deploy({ "quern.yaml": "- name: x\n  predictor: {path: p.py}\n", "p.py": PREDICTOR });
  expect((await send({ a: "SECRET" }, "before")).status).toBe(200);
  await server.stopProcesses();
  expect(existsSync(file)).toBe(false);
  await server.start({}, ["--access-log"]);
});

it("it has a line for each request to a real-time API, with its outcome and without its payload", async () => {
  await send({ a: "SECRET" }, "good");
  await send({ bad: true }, "raises");
  await send("{not json SECRET", "malformed");
  const { api_id } = await server.api("x");
  expect(await lineOf("good")).toEqual({
    time: expect.stringMatching(/^20.*Z$/),
    request_id: "good",
    api: "x",
    api_id,
    method: "POST",
    status: 200,
    duration_ms: expect.any(Number),
    request_bytes: '{"a":"SECRET"}'.length,
    response_bytes: expect.any(Number),
    key: null,
  });
  expect(await lineOf("raises")).toMatchObject({ status: 500 });
  expect(await lineOf("malformed")).toMatchObject({ status: 400 });
  expect(readFileSync(file, "utf8")).not.toContain("SECRET");
});

it("it has the bytes of each response, also if requests are pipelined", async () => {
  const ids = ["p-1", "p-22", "p-333"];
  const { port } = new URL(server.baseUrl);
  const sent = new RawRequest(connect(Number(port), "127.0.0.1"));
  const posted = (id: string) =>
    `POST /x HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 7\r\nx-request-id: ${id}\r\n\r\n{"a":1}`;
  sent.socket.write(ids.map(posted).join(""));
  const logged = await Promise.all(ids.map(lineOf));
  sent.socket.destroy();
  const responses = sent.text.split(/(?=HTTP\/1\.1 200 )/);
  expect(logged.map(({ response_bytes }) => response_bytes)).toEqual(responses.map(({ length }) => length));
});

it("it has the id of the key, and a request without one", async () => {
  const { out } = server.cli(["keys", "create", "--scope", "predict", "-o", "json"]);
  const { key, id } = JSON.parse(out) as { key: string; id: string };
  expect((await send({}, "with-key", { authorization: `Bearer ${key}` })).status).toBe(200);
  expect((await send({}, "without")).status).toBe(401);
  expect(await lineOf("with-key")).toMatchObject({ status: 200, key: id });
  expect(await lineOf("without")).toMatchObject({ status: 401, key: null });
  server.cli(["keys", "revoke", id]);
});

it("a client that leaves is 499, and a stop loses no line", async () => {
  const { port } = new URL(server.baseUrl);
  const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
  const headers = {
    "content-type": "application/json",
    "x-request-id": "left",
    authorization: `Bearer ${token}`,
  };
  const leaving = request({ port, method: "POST", path: "/x", headers });
  leaving.on("error", () => {});
  const begun = join(server.dir, "begun");
  leaving.end(JSON.stringify({ begun }));
  await eventually("the request has begun", () => existsSync(begun));
  leaving.destroy();
  await send({}, "last", { authorization: `Bearer ${token}` });
  await server.stopProcesses();
  expect(await lineOf("left")).toMatchObject({ status: 499 });
  expect(await lineOf("last")).toMatchObject({ status: 200 });
  await server.start();
});
