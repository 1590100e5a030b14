/** The end of a server behind a load balancer, which must learn of it first. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { ECHO, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

describe("a server with a drain delay", () => {
  let server: TestServer;
  beforeEach(() => {
    server = new TestServer();
  });
  afterEach(() => server.stop());
  /** Its exit code. */
  const end = () => new Promise((resolve) => server.parent!.once("exit", (code) => resolve(code)));

  it("is not ready after SIGTERM, takes requests until another one, and then drains", async () => {
    await server.start({}, ["--drain-delay", "3600"]);
    server.deploy(project(ECHO));
    const ended = end();
    const get = (path: string) => server.fetch(path, { headers: { connection: "close" } });
    server.parent!.kill("SIGTERM");
    await eventually("it is not ready", async () => (await get("/-/readyz")).status === 503);
    // One that starts only now says so too.
    process.kill(server.child("gateway"), "SIGKILL");
    await eventually("another gateway is there", async () => (await get("/-/livez")).status === 200);
    await eventually("it is not ready either", async () => (await get("/-/readyz")).status === 503);
    const response = await server.post("/echo", { a: 1 }, { connection: "close" });
    expect([response.status, await response.json()]).toEqual([200, { a: 1 }]);
    server.parent!.kill("SIGTERM");
    expect(await ended).toBe(0);
  });

  it("refuses new connections while it finishes requests, instead of letting them wait for its end", async () => {
    await server.start();
    server.deploy(
      project(
        'import os, time\nclass PythonPredictor:\n    def __init__(self, config): pass\n    def predict(self, payload):\n        while not os.path.exists(payload["file"]):\n            time.sleep(0.05)\n        return payload\n',
      ),
    );
    const ended = end();
    const file = join(server.dir, "go-on");
    const inFlight = server.post("/echo", { file }, { connection: "close" });
    await eventually("the request is in flight", async () => (await server.inFlight("echo")) === 1);
    server.parent!.kill("SIGTERM");
    const isRefused = async () => {
      const cause = await server
        .fetch("/-/livez", { headers: { connection: "close" }, signal: AbortSignal.timeout(500) })
        .then(() => undefined)
        .catch((error: { cause?: { code?: string } }) => error.cause?.code);
      return cause === "ECONNREFUSED";
    };
    await eventually("new connections are refused", isRefused);
    expect(server.parent!.exitCode).toBe(null);
    writeFileSync(file, "");
    expect((await inFlight).status).toBe(200);
    expect(await ended).toBe(0);
  });

  it("drains once it is over", async () => {
    await server.start({}, ["--drain-delay", "1"]);
    const ended = end();
    const fromMs = performance.now();
    server.parent!.kill("SIGTERM");
    expect(await ended).toBe(0);
    expect(performance.now() - fromMs).toBeGreaterThan(1_000);
  });
});
