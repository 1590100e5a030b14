/** Clients that leave, stall, lie or never read: they leak nothing, and do not affect others. */
import { readdirSync, readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { seeded } from "../../harness/random.ts";
import { TestServer } from "../../harness/server.ts";
import { SteadyLoad } from "../../harness/steady-load.ts";

const SYNC = `
import time
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        time.sleep(payload.get("seconds", 0.005))
        return payload
`;
const ASYNC = SYNC.replace("import time", "import asyncio")
  .replace("def predict", "async def predict")
  .replace("time.sleep", "await asyncio.sleep");
const STREAM = `
import time
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        for n in range(payload.get("times", 20)):
            time.sleep(0.001)
            yield {"n": n, "text": "x" * payload.get("bytes", 200)}
`;

const rssMiB = (pid: number) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024;
const CLIENTS = Number(process.env.QUERN_TEST_CLIENTS ?? 1_500);

describe("clients that leave", () => {
  const server = new TestServer();
  beforeAll(async () => {
    await server.start();
    const api = (name: string, more = "") =>
      `- name: ${name}\n  predictor: {path: ${name}_.py${more}}\n  autoscaling: {max_replicas: 1, max_replica_concurrency: 64}\n`;
    server.deploy({
      "quern.yaml": api("sync") + api("threads", ", threads_per_process: 4") + api("async") + api("stream"),
      "sync_.py": SYNC,
      "threads_.py": SYNC,
      "async_.py": ASYNC,
      "stream_.py": STREAM,
    });
  });
  afterAll(() => server.stop());
  const descriptors = (pid: number) => readdirSync(`/proc/${pid}/fd`).length;

  it(`leave nothing behind: ${CLIENTS} of them, at random moments`, async () => {
    const gateway = server.child("gateway");
    const before = descriptors(gateway);
    const workersBefore = server.workers().map(descriptors);
    const memoryBefore = [gateway, ...server.workers()].map(rssMiB);
    const random = seeded(Number(process.env.QUERN_TEST_SEED ?? Date.now()));
    const { port } = new URL(server.baseUrl);
    let left = CLIENTS;
    const one = () => {
      const api = ["sync", "threads", "async", "stream"][Math.floor(random() * 4)]!;
      const body = JSON.stringify({ pad: "p".repeat(Math.floor(random() * 2000)) });
      const request = `POST /${api} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
      // Some never send all of it.
      const sent = random() < 0.2 ? request.slice(0, Math.floor(random() * request.length)) : request;
      return new Promise<void>((resolve) => {
        const socket = connect(Number(port), "127.0.0.1", () => {
          socket.write(sent);
          setTimeout(() => (random() < 0.5 ? socket.destroy() : socket.resetAndDestroy()), random() * 60);
        });
        socket.on("error", () => {});
        socket.on("close", () => resolve());
        socket.on("data", () => {});
      });
    };
    const clients = Array.from({ length: 100 }, async () => {
      while (left-- > 0) await one();
    });
    await Promise.all(clients);
    const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    const gauges = async () => {
      const response = await server.fetch("/-/metrics", {
        headers: { authorization: `Bearer ${token}`, connection: "close" },
      });
      return [
        ...(await response.text()).matchAll(/^quern_(?:requests_in_flight|queue_depth)\{.*\} (\d+)$/gm),
      ].map(([, value]) => Number(value));
    };
    await eventually(
      "nothing is under way",
      async () => (await gauges()).length === 8 && (await gauges()).every((value) => value === 0),
      30_000,
    );
    await eventually(
      "no descriptor is left",
      () => descriptors(gateway) <= before + 4,
      15_000,
      () => `${descriptors(gateway)} of ${before}`,
    );
    const workersNow = () => server.workers().map(descriptors);
    expect(workersNow()).toHaveLength(workersBefore.length);
    await eventually(
      "none of the workers' is left",
      () => workersNow().every((now, at) => now <= workersBefore[at]! + 4),
      15_000,
      () => `${workersNow()} of ${workersBefore}`,
    );
    const grownMiB = [gateway, ...server.workers()].map((pid, at) => rssMiB(pid) - memoryBefore[at]!);
    expect(Math.max(...grownMiB)).toBeLessThan(64);
    // Every slot is free: a request for each at once, and none is refused.
    for (const api of ["sync", "threads", "async"]) {
      const answers = await Promise.all(
        Array.from({ length: 64 }, (_, id) => server.post(`/${api}`, { id })),
      );
      expect([api, answers.filter(({ status }) => status !== 200).length]).toEqual([api, 0]);
    }
    const streams = await Promise.all(
      Array.from({ length: 30 }, () => server.post("/stream", { times: 5 }).then((r) => r.text())),
    );
    expect(streams.every((text) => text.trim().split("\n").length === 5)).toBe(true);
  }, 180_000);
});

describe("clients that are rude", () => {
  const server = new TestServer();
  const sockets: Socket[] = [];
  beforeAll(async () => {
    await server.start({}, ["--max-body", "1000000"]);
    server.deploy({
      "quern.yaml":
        "- name: echo\n  predictor: {path: sync_.py}\n- name: stream\n  predictor: {path: stream_.py, timeout: 4s}\n",
      "sync_.py": SYNC.replace("0.005", "0"),
      "stream_.py": STREAM,
    });
  });
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    await server.stop();
  });
  const open = (text = ""): Promise<Socket> =>
    new Promise((resolve, reject) => {
      const { port } = new URL(server.baseUrl);
      const socket = connect(Number(port), "127.0.0.1", () => {
        socket.write(text);
        resolve(socket);
      });
      socket.on("error", reject);
      sockets.push(socket);
    });
  /** Everything received until the server closes, or is silent for a while. */
  const exchange = async (text: string, waitMs = 3_000): Promise<string> => {
    const socket = await open(text);
    let answer = "";
    socket.removeAllListeners("error").on("error", () => {});
    socket.on("data", (data) => (answer += String(data)));
    await Promise.race([
      new Promise((resolve) => socket.on("close", resolve)),
      new Promise((resolve) => setTimeout(resolve, waitMs)),
    ]);
    socket.destroy();
    return answer;
  };
  const head = (more: string) =>
    `POST /echo HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n${more}`;

  const PROBLEM_400 = /^HTTP\/1.1 400 .*application\/problem\+json.*"code":"invalid_request"/s;
  const PROBLEM_501 =
    /^HTTP\/1.1 501 .*application\/problem\+json.*"code":"transfer_encoding_not_supported"/s;
  it.each([
    ["two Content-Lengths", head("content-length: 2\r\ncontent-length: 3\r\n\r\n{} "), /^HTTP\/1.1 400/],
    [
      "Content-Length and Transfer-Encoding",
      head("content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
      /^HTTP\/1.1 400/,
    ],
    [
      "an unknown Transfer-Encoding",
      head("transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
      /^HTTP\/1.1 400/,
    ],
    [
      "a body that is not only chunked",
      head("transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
      PROBLEM_501,
    ],
    [
      "two Transfer-Encodings",
      head("transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
      PROBLEM_501,
    ],
    [
      "a Transfer-Encoding of HTTP/1.0",
      head("connection: keep-alive\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n").replace("1.1", "1.0"),
      PROBLEM_501,
    ],
    [
      "HTTP/2.0",
      head("content-length: 2\r\n\r\n{}").replace("1.1", "2.0"),
      /^HTTP\/1.1 505 .*"code":"http_version_not_supported"/s,
    ],
    ["too many headers", head(`${"a:b\r\n".repeat(200)}content-length: 2\r\n\r\n{}`), /^HTTP\/1.1 431/],
    ["two Hosts", head("host: localhost\r\ncontent-length: 2\r\n\r\n{}"), PROBLEM_400],
    [
      "chunked with a space before the colon",
      head("transfer-encoding : chunked\r\n\r\n0\r\n\r\n"),
      /^HTTP\/1.1 400/,
    ],
    [
      "a chunk that lies about its length",
      head("transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"),
      /^HTTP\/1.1 400/,
    ],
    ["a negative Content-Length", head("content-length: -5\r\n\r\n{}"), /^HTTP\/1.1 400/],
    ["headers of 100 KB", head(`x-long: ${"a".repeat(100_000)}\r\n\r\n`), /^HTTP\/1.1 431/],
    ["an announced body that is too large", head("content-length: 2000000\r\n\r\n"), /^HTTP\/1.1 413/],
    [
      "a line feed alone as the line's end",
      "POST /echo HTTP/1.1\nhost: localhost\ncontent-length: 2\n\n{}",
      /^(HTTP\/1.1 400|$)/,
    ],
    ["a header with a line break", head("x-a: b\rx-b: c\r\n\r\n"), /^HTTP\/1.1 400/],
    ["no Host", "POST /echo HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}", /^HTTP\/1.1 4\d\d/],
    ["something other than HTTP", "\x16\x03\x01hello\r\n\r\n", /^HTTP\/1.1 400/],
  ])("are refused with %s, and hidden requests are never run", async (_, text, answer) => {
    // Text that would be a second request if the first one ended elsewhere.
    const hidden = `${text}POST /echo HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n"smuggled"`;
    const got = await exchange(hidden);
    expect(got).toMatch(answer);
    expect(got).not.toContain("smuggled");
  });

  it.each([
    ["/echo", "1.0", /^HTTP\/1.1 200 .*\{"id": ?1\}$/s],
    ["/-/keys", "1.0", /^HTTP\/1.1 400 .*key \\"id\\" is not supported/s],
    ["/echo", "1.1", /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 /],
    ["/-/keys", "1.1", /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 400 /],
  ])("and expect 100 Continue from %s get it with HTTP/1.1 only (%s)", async (path, version, answer) => {
    const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    const more = `connection: close\r\nexpect: 100-continue\r\nauthorization: Bearer ${token}\r\n`;
    const text = head(`${more}content-length: 8\r\n\r\n{"id":1}`)
      .replace("/echo", path)
      .replace("1.1", version);
    const got = await exchange(text);
    expect(got).toMatch(answer);
    expect(got.match(/ 100 Continue/g) ?? []).toHaveLength(version === "1.1" ? 1 : 0);
  });

  it("are cut off when a chunked body grows too large", async () => {
    const chunk = `${(65_536).toString(16)}\r\n${"x".repeat(65_536)}\r\n`;
    const got = await exchange(head("transfer-encoding: chunked\r\n\r\n") + chunk.repeat(20));
    expect(got).toMatch(/^HTTP\/1.1 413/);
  });

  it("do not slow others: slow heads, slow bodies, idle connections, unread streams", async () => {
    const connections = Number(process.env.QUERN_TEST_IDLE ?? 1_500);
    const gateway = server.child("gateway");
    const p95 = (answers: { startedMs: number; endedMs: number }[]) =>
      answers.map(({ startedMs, endedMs }) => endedMs - startedMs).sort((a, b) => a - b)[
        Math.floor(answers.length * 0.95)
      ]!;
    const measure = async () => {
      const load = new SteadyLoad(`${server.baseUrl}/echo`, 4);
      const enough = load.answers.length + 1_500;
      await eventually("enough answers", () => load.answers.length > enough, 30_000);
      const answers = await load.stop();
      expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
      return p95(answers);
    };
    await measure();
    const alone = await measure();
    const before = rssMiB(gateway);
    const rude: Socket[] = [];
    for (let i = 0; i < connections; i++) rude.push(await open());
    for (let i = 0; i < 100; i++) rude.push(await open(head("content-length: 1000\r\n\r\n{")));
    for (let i = 0; i < 100; i++) rude.push(await open("POST /echo HTTP/1.1\r\nhost: lo"));
    const body = JSON.stringify({ times: 1_000_000, bytes: 10_000 });
    for (let i = 0; i < 20; i++) {
      const socket = await open(
        `POST /stream HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
      socket.pause();
      rude.push(socket);
    }
    for (const socket of rude) socket.removeAllListeners("error").on("error", () => {});
    const dripping = setInterval(() => {
      for (const socket of rude.slice(connections))
        if (socket.writable && !socket.isPaused()) socket.write("a");
    }, 500);
    const beside = await measure();
    console.log(
      `    p95 ${alone.toFixed(1)} ms alone, ${beside.toFixed(1)} ms beside ${rude.length} rude connections; gateway RSS ${before.toFixed(0)} -> ${rssMiB(gateway).toFixed(0)} MiB`,
    );
    // On a busy machine one turn of the scheduler alone takes 20 ms. If they slowed others, it would be seconds.
    expect(beside).toBeLessThan(Math.max(alone * 3, 50));
    // A megabyte of credit, what the kernel buffers, and a few kilobytes a connection.
    expect(rssMiB(gateway) - before).toBeLessThan(20 * 4 + connections * 0.04 + 60);
    await eventually(
      "slow heads were cut off",
      () =>
        rude
          .slice(connections + 100, connections + 200)
          .every((socket) => socket.destroyed || socket.readyState !== "open"),
      40_000,
    );
    clearInterval(dripping);
    for (const socket of rude) socket.destroy();
  }, 120_000);
});
