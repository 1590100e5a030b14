import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { RawRequests } from "../../harness/raw-requests.ts";
import { TestServer } from "../../harness/server.ts";
import { SteadyLoad } from "../../harness/steady-load.ts";

const SLEEPER = `
import os, threading, time
class PythonPredictor:
    def __init__(self, config):
        self.ran = []
        self.meeting = threading.Barrier(16)
        self.lock = threading.Lock()
        self.running = self.most = 0
    def predict(self, payload):
        self.ran.append(payload.get("id"))
        if payload.get("ran"): return self.ran
        if payload.get("meet"): return self.meet()
        if "begun" in payload: open(payload["begun"], "w").close()
        time.sleep(payload.get("seconds", 0))
        while "until" in payload and not os.path.exists(payload["until"]): time.sleep(0.02)
        return payload.get("id")
    def meet(self):
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self.meeting.wait(30)
        with self.lock: self.running -= 1
        return self.most
`;

const BATCHED = `
import time
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload, headers, query_params):
        time.sleep(0.05)
        if any("mine" in p for p in payload):
            return [[p["mine"], h["X-Mine"], q.getlist("mine")] for p, h, q in zip(payload, headers, query_params)]
        if any(p.get("short") for p in payload): return payload[1:]
        return [ValueError("mine") if p.get("fail") else {"id": p["id"], "of": len(payload)} for p in payload]
`;

describe("a real-time API with concurrent requests", () => {
  const server = new TestServer();
  beforeAll(async () => {
    await server.start();
    server.deploy({
      "quern.yaml": `
- name: threads
  predictor: {path: sleeper.py, threads_per_process: 16, timeout: 2s}
- name: single
  predictor: {path: sleeper.py, timeout: 2s}
  autoscaling: {max_replica_concurrency: 3}
- name: patient
  predictor: {path: sleeper.py}
  autoscaling: {max_replica_concurrency: 3}
- name: batched
  predictor: {path: batched.py, server_side_batching: {max_batch_size: 8, batch_interval: 100ms}}
`,
      "sleeper.py": SLEEPER,
      "batched.py": BATCHED,
    });
  });
  afterAll(() => server.stop());

  const post = async (api: string, payload: unknown, init: RequestInit = {}) => {
    const response = await server.fetch(`/${api}`, {
      method: "POST",
      body: JSON.stringify(payload),
      headers: { "content-type": "application/json" },
      ...init,
    });
    return {
      status: response.status,
      retryAfter: response.headers.get("retry-after"),
      body: await response.json(),
    };
  };

  it("runs as many requests at once as a process has threads", async () => {
    // None ends before sixteen have begun.
    const answers = await Promise.all(Array.from({ length: 32 }, () => post("threads", { meet: true })));
    expect(answers.map(({ status }) => status)).toEqual(Array(32).fill(200));
    expect(Math.max(...answers.map(({ body }) => body as number))).toBe(16);
  });

  it("lets other requests finish before a worker with a hanging thread is replaced", async () => {
    const [pid] = pidsOf(server, "threads");
    const hung = post("threads", { seconds: 600 });
    expect(await hung).toMatchObject({ status: 504, body: { code: "prediction_timeout" } });
    // Until it is replaced, and during the replacement, others run in parallel: none of them is killed.
    const load = new SteadyLoad(`${server.baseUrl}/threads`, 8, { seconds: 1 });
    await eventually("another process serves", () => !pidsOf(server, "threads").includes(pid!), 20_000);
    const answers = await load.stop();
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    expect(answers.length).toBeGreaterThanOrEqual(8);
    expect((await post("threads", { id: "after" })).body).toBe("after");
  });

  it("limits waiting requests, and refuses more with Retry-After", async () => {
    const until = join(server.dir, "bounded-may-end");
    let left = 6;
    const asked = Array.from({ length: 6 }, (_, id) => post("single", { id, until }).finally(() => left--));
    await eventually("what is too much is refused", () => left === 3, 15_000);
    writeFileSync(until, "");
    const answers = await Promise.all(asked);
    const refused = answers.filter(({ status }) => status === 503);
    expect(refused.length).toBe(3);
    expect(refused[0]).toMatchObject({ retryAfter: "1", body: { code: "queue_full" } });
  });

  it("gives 503 to requests that waited too long, and 504 to those that ran too long", async () => {
    const begun = join(server.dir, "running");
    const running = post("single", { seconds: 1, begun });
    await eventually("it runs", () => existsSync(begun));
    // Either may arrive first and run.
    const [next, last] = (
      await Promise.all([post("single", { seconds: 2.5 }), post("single", { seconds: 2.5 })])
    ).sort((a, b) => b.status - a.status);
    expect((await running).status).toBe(200);
    expect(next).toMatchObject({ status: 504, body: { code: "prediction_timeout" } });
    expect(last).toMatchObject({ status: 503, retryAfter: "1", body: { code: "queue_timeout" } });
    await eventually("it serves again", async () => (await post("single", {})).status === 200);
  });

  it("frees the slot of a waiting client that leaves, and never runs its request", async () => {
    const [begun, gate] = [join(server.dir, "busy"), join(server.dir, "busy-may-end")];
    const busy = post("patient", { id: "busy", until: gate, begun });
    await eventually("it runs", () => existsSync(begun));
    const leaving = new AbortController();
    const left = post("patient", { id: "left" }, { signal: leaving.signal }).catch(() => "gone");
    await eventually("the other one waits", async () => (await server.inFlight("patient")) === 2);
    leaving.abort();
    expect(await left).toBe("gone");
    await eventually(
      "the server knows that it has left",
      async () => (await server.inFlight("patient")) === 1,
    );
    writeFileSync(gate, "");
    expect((await busy).body).toBe("busy");
    expect((await post("patient", { ran: true })).body).not.toContain("left");
  });

  it("takes a client that ends its side for one that has left", async () => {
    const [begun, gate] = [join(server.dir, "ended"), join(server.dir, "ended-may-end")];
    const requests = new RawRequests(server.baseUrl);
    const send = (payload: unknown) => {
      const text = JSON.stringify(payload);
      const headers = { "content-type": "application/json", "content-length": text.length };
      const sent = requests.send("POST /patient", headers);
      sent.socket.write(text);
      return sent;
    };
    const runs = send({ id: "runs", begun, until: gate });
    await eventually("it runs", () => existsSync(begun));
    const waits = send({ id: "waits" });
    await eventually("the other one waits", async () => (await server.inFlight("patient")) === 2);
    for (const { socket } of [runs, waits]) socket.end();
    await eventually("both are closed", () => runs.socket.closed && waits.socket.closed);
    writeFileSync(gate, "");
    expect([runs.text, waits.text]).toEqual(["", ""]);
    expect((await post("patient", { ran: true })).body).not.toContain("waits");
  });

  it("groups waiting requests into batches, and gives each its own answer", async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, (_, id) => post("batched", { id })));
    const bodies = answers.map(({ body }) => body as { id: number; of: number });
    expect(bodies.map(({ id }) => id)).toEqual(Array.from({ length: 40 }, (_, id) => id));
    expect(Math.max(...bodies.map(({ of }) => of))).toBe(8);
    // 50 ms of its own without the interval, if nothing else runs on the machine.
    await eventually("one that is alone does not wait for others", async () => {
      const started = performance.now();
      expect((await post("batched", { id: "alone" })).body).toEqual({ id: "alone", of: 1 });
      return performance.now() - started < 140;
    });
  });

  it("gives a batch lists of headers and queries, with one element for each request", async () => {
    const mine = Array.from({ length: 20 }, (_, n) => String(n));
    const answers = await Promise.all(
      mine.map((n) => server.post(`/batched?mine=${n}&mine=${n}`, { mine: n }, { "x-mine": n })),
    );
    expect(await Promise.all(answers.map((answer) => answer.json()))).toEqual(
      mine.map((n) => [n, n, [n, n]]),
    );
  });

  it("fails one item for one exception, and the whole batch if its result is too short", async () => {
    const mixed = await Promise.all(
      [{ id: 1 }, { id: 2, fail: true }, { id: 3 }].map((p) => post("batched", p)),
    );
    expect(mixed.map(({ status }) => status)).toEqual([200, 500, 200]);
    const short = await Promise.all(
      [
        { id: 1, short: true },
        { id: 2, short: true },
      ].map((p) => post("batched", p)),
    );
    expect(short.map(({ status }) => status)).toEqual([500, 500]);
    expect(server.cli(["logs", "batched"]).out).toContain("return a list of one value for each");
  });
});

/** The workers of one API, by the project's file that they log under. */
function pidsOf(server: TestServer, api: string): number[] {
  const routes = JSON.parse(readFileSync(join(server.dataDir, "routes.json"), "utf8")) as {
    apis: { name: string; replicas: { pid: number }[] }[];
  };
  return routes.apis.find(({ name }) => name === api)!.replicas.map(({ pid }) => pid);
}
