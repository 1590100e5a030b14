/**
 * Requests that reach their replica late, because they waited or their body came slowly: the replica survives them, and
 * other callers lose nothing.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { RawRequests } from "../../harness/raw-requests.ts";
import { TestServer } from "../../harness/server.ts";

const PREDICTOR = `
import os, time

class PythonPredictor:
    def __init__(self, config): self.calls = 0
    def predict(self, payload):
        self.calls += 1
        if "begun" in payload: open(payload["begun"], "w").close()
        if "pieces" in payload: return self.pieces(payload["pieces"], payload.get("hung"))
        time.sleep(payload.get("seconds", 0))
        return [os.getpid(), self.calls]
    def pieces(self, count, hung):
        for number in range(count):
            time.sleep(0.05)
            yield number
        if hung: time.sleep(open(hung, "w").close() or 600)
`;
const CALLERS = 11;
const TIMEOUT_MS = 1_500;
/** The queue of eleven callers takes a tenth longer than the timeout. */
const SECONDS = 0.15;

describe("a replica", () => {
  const server = new TestServer();
  beforeAll(async () => {
    await server.start();
    const limits = `predictor: {path: predictor.py, timeout: ${TIMEOUT_MS}ms}, autoscaling: {max_replicas: 1}`;
    server.deploy({
      "quern.yaml": ["crowded", "shared", "hung", "piece"]
        .map((name) => `- {name: ${name}, ${limits}}\n`)
        .join(""),
      "predictor.py": PREDICTOR,
    });
  });
  afterAll(() => server.stop());

  const send = (api: string, payload: unknown) => {
    const headers = { "content-type": "application/json" };
    return server.fetch(`/${api}`, { method: "POST", body: JSON.stringify(payload), headers });
  };
  const post = async (api: string, payload: unknown) => {
    const response = await send(api, payload);
    return { status: response.status, text: await response.text() };
  };

  it("with a tenth more callers than it can serve in time answers nearly as many as it can, and lives", async () => {
    const untilMs = performance.now() + 8_000;
    const answers: { status: number; text: string }[] = [];
    const caller = async () => {
      while (performance.now() < untilMs) answers.push(await post("crowded", { seconds: SECONDS }));
    };
    await Promise.all(Array.from({ length: CALLERS }, caller));
    const answered = answers.filter(({ status }) => status === 200).map(({ text }) => JSON.parse(text));
    expect(new Set(answered.map(([pid]) => pid)).size).toBe(1);
    const calls = Math.max(...answered.map(([, number]) => number));
    expect(answered.length).toBeGreaterThan(0.8 * calls);
    expect(answered.length).toBeGreaterThan(10);
  });

  it("keeps the streams of others while a request runs whose body came slowly", async () => {
    const stream = post("shared", { pieces: 80 });
    const slow = new RawRequests(server.baseUrl);
    const body = JSON.stringify({ seconds: 0.5 });
    const request = slow.send("POST /shared", {
      "content-type": "application/json",
      "content-length": body.length + 1,
    });
    request.socket.write(body);
    await new Promise((resolve) => setTimeout(resolve, TIMEOUT_MS - 100));
    request.socket.write(" ");
    expect(await request.firstStatus()).toMatch(/50[34]/);
    const lines = (await stream).text.trim().split("\n");
    expect(lines).toEqual(Array.from({ length: 80 }, (_, number) => String(number)));
    slow.close();
  });

  it("that hangs is killed, although the call that hangs began late, and not before its own timeout", async () => {
    const [first] = JSON.parse((await post("hung", {})).text);
    const begun = join(server.dir, "begun");
    const before = post("hung", { seconds: 1, begun });
    await eventually("it runs", () => existsSync(begun));
    const beganMs = performance.now();
    const hung = post("hung", { seconds: 600 });
    expect((await before).status).toBe(200);
    expect(await hung).toMatchObject({ status: 504, text: expect.stringContaining("prediction_timeout") });
    const next = await post("hung", {});
    // It was killed a second after the timeout of the request. Then another one had to start.
    const waited = next.status === 200 ? next : await post("hung", {});
    expect(JSON.parse(waited.text)[0]).not.toBe(first);
    expect(performance.now() - beganMs).toBeGreaterThan(950 + TIMEOUT_MS);
  });

  it("that hangs in a piece of a stream whose client has left is killed", async () => {
    const [first] = JSON.parse((await post("piece", {})).text) as number[];
    const hangs = join(server.dir, "hangs");
    const stream = await send("piece", { pieces: 1, hung: hangs });
    await eventually("it hangs", () => existsSync(hangs));
    await stream.body?.cancel();
    await eventually("another process serves", async () => {
      const { status, text } = await post("piece", {});
      return status === 200 && JSON.parse(text)[0] !== first;
    });
  });
});
