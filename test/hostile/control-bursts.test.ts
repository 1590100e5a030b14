/**
 * Bursts of requests for the controller, from callers without a key: they wait their turn, and delay no other caller.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  FORWARDED_AT_ONCE_MAX,
  FORWARDED_WAITING_OF_A_SENDER_MAX,
} from "../../src/contracts/limits/requests.ts";
import { eventually } from "../harness/eventually.ts";
import { ECHO, project } from "../harness/projects.ts";
import { type RawRequest, RawRequests } from "../harness/raw-requests.ts";
import { TestServer } from "../harness/server.ts";

/**
 * One a connection: the gateway closes those that pipeline so many without a key. Some more than fit, because the
 * gateway gives up places that are held for a second. Not many more: the parent replaces a controller that is stopped
 * for ten seconds.
 */
const sent = FORWARDED_AT_ONCE_MAX + FORWARDED_WAITING_OF_A_SENDER_MAX + 100;

describe("a burst of requests for the controller", () => {
  const server = new TestServer();
  let requests: RawRequests;
  beforeAll(async () => {
    await server.start();
    server.deploy(project(ECHO));
    requests = new RawRequests(server.baseUrl);
  });
  afterEach(() => requests.close());
  afterAll(() => server.stop());

  const burst = (connections: number, path: string): RawRequest[] =>
    Array.from({ length: connections }, () => requests.send(`GET ${path}`, {}, "127.0.0.2"));
  const answers = (burst: RawRequest[], status: number) =>
    burst.reduce((sum, { text }) => sum + text.split(`HTTP/1.1 ${status}`).length - 1, 0);

  it("waits in a queue per sender: another sender's request is next after those in progress", async () => {
    const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    const goOn = server.freeze("controller");
    const strangers = burst(sent, "/-/version");
    await eventually("their queue is full", () => answers(strangers, 503) > 0);
    let answered = -1;
    const admin = requests.send("GET /-/version", { authorization: `Bearer ${token}` });
    admin.socket.once("data", () => {
      answered = answers(strangers, 401);
    });
    // A later request is answered, so the gateway has the admin's.
    expect((await server.post("/echo", { a: 1 })).status).toBe(200);
    goOn();
    expect(await admin.firstStatus()).toBe("200");
    expect(answered).toBeLessThan((sent * 2) / 3);
    const all = () => answers(strangers, 401) + answers(strangers, 503);
    await eventually("all are answered", () => all() === sent);
  });

  it("is refused beyond the queue limit, and predictions are not affected", async () => {
    const controller = server.child("controller");
    const goOn = server.freeze("controller");
    const strangers = burst(sent, "/-/openapi.json");
    expect((await server.post("/echo", { a: 1 })).status).toBe(200);
    await eventually("some are refused", () => answers(strangers, 503) > 0);
    goOn();
    const all = () => answers(strangers, 200) + answers(strangers, 503);
    await eventually("all are answered", () => all() === sent);
    expect(answers(strangers, 200)).toBeGreaterThan(FORWARDED_AT_ONCE_MAX);
    expect(server.child("controller")).toBe(controller);
  });

  it.each([
    ["announced", { "content-length": 60 }, '{"key":"'],
    ["in chunks", { "transfer-encoding": "chunked" }, '8\r\n{"key":"\r\n'],
  ])("of sign-ins whose bodies come slowly (%s) takes no turn of another one", async (_, length, begun) => {
    const slow = Array.from({ length: 400 }, (_, n) => {
      const address = `127.0.1.${1 + (n % 200)}`;
      const one = requests.send(
        "POST /-/session",
        { "content-type": "application/json", ...length },
        address,
      );
      one.socket.write(begun);
      return one;
    });
    await eventually("all are connected", () => slow.every(({ socket }) => !socket.connecting));
    const startMs = performance.now();
    expect((await server.post("/-/session", { key: "quern_unknown" })).status).toBe(401);
    expect(performance.now() - startMs).toBeLessThan(2_000);
    expect(slow.map(({ text }) => text).join("")).toBe("");
  });
});
