/**
 * Requests at real workers that die or are slow: which may go to another replica, when each times out, and which stay
 * in memory.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { CANCEL_GRACE_MS, LOST_AT_ONCE_MAX } from "../../../src/contracts/limits/predictions.ts";
import { STREAM_POLL_MS } from "../../../src/contracts/limits/responses.ts";
import type { ApiRoute } from "../../../src/contracts/routes.ts";
import { PredictionRequest } from "../../../src/gateway/answers/prediction-request.ts";
import { ApiPool } from "../../../src/gateway/replicas/api-pool.ts";
import { MESSAGE } from "../../../src/protocol/messages.ts";
import { WorkerConnection } from "../../../src/protocol/worker-connection.ts";
import { eventually } from "../../harness/eventually.ts";
import { fakeWorker } from "../../harness/fake-worker.ts";
import { root } from "../../harness/server.ts";

const TOKEN = "f00d";
const NO_PROCESS = { pid: 0, process_start: "0", token: TOKEN };
const PREDICTOR = `
import os, signal, time
class PythonPredictor:
    def __init__(self, config): self.log = config["log"]
    def note(self, line):
        with open(self.log, "a") as log: log.write(line + "\\n")
    def begun(self):
        with open(self.log) as log: return log.read().split()
    def predict(self, payload):
        self.note(payload["id"])
        while "until" in payload and payload["until"] not in self.begun(): time.sleep(0.005)
        if payload.get("die"): os.kill(os.getpid(), signal.SIGKILL)
        return self.pieces(payload["stream_until"]) if "stream_until" in payload else payload["id"]
    def pieces(self, until):
        yield "first"
        while until not in self.begun(): time.sleep(0.005)
`;

describe("a pool of an API", () => {
  let dir: string;
  let log: string;
  const workers: ChildProcess[] = [];
  let pool: ApiPool;
  const broken: string[] = [];
  const replaced: string[] = [];
  let isStillOpen = true;

  beforeEach(() => {
    isStillOpen = true;
    replaced.length = 0;
    dir = mkdtempSync(join(tmpdir(), "quern-pool-"));
    log = join(dir, "log");
    writeFileSync(log, "");
    writeFileSync(join(dir, "predictor.py"), PREDICTOR);
  });
  afterEach(() => {
    for (const worker of workers.splice(0)) worker.kill("SIGKILL");
    pool.retire();
    rmSync(dir, { recursive: true, force: true });
    expect(broken).toEqual([]);
  });

  const begun = () => readFileSync(log, "utf8").trim().split("\n");
  const filesOf = (name: string) => ({
    worker_id: name,
    socket: join(dir, `${name}.sock`),
    note: join(dir, `${name}.note`),
  });
  const route = (names: string[], fields: Partial<ApiRoute> = {}): ApiRoute => ({
    name: "api",
    endpoint: "/api",
    is_public: true,
    cors_origins: [],
    needs_key: false,
    kind: "RealtimeAPI",
    api_id: "v1",
    status: "live",
    timeout_ms: 60_000,
    capacity: 100,
    parallel: 2,
    is_blocking: false,
    can_sleep: false,
    expose_errors: false,
    pass_credentials: false,
    wants: [],
    replicas: names.map((name) => ({
      ...NO_PROCESS,
      pid: workers[0]?.pid ?? NO_PROCESS.pid,
      ...filesOf(name),
    })),
    ...fields,
  });

  /** Ready, with so many threads. */
  async function addWorker(name: string, threads: number): Promise<void> {
    const socket = join(dir, `${name}.sock`);
    const args = ["-m", "quern_runtime", "--listen", `unix:${socket}`, "--note", join(dir, `${name}.note`)];
    const env = { ...process.env, QUERN_WORKER_TOKEN: TOKEN };
    workers.push(spawn("python3", args, { cwd: join(root, "python"), env, stdio: "ignore" }));
    let isReady = false;
    const events = {
      expects: () => false,
      onMessage: (type: number) => {
        isReady = type === MESSAGE.READY;
      },
      onClose: () => {},
    };
    const hello = { role: "controller", token: TOKEN, epoch: 1 } as const;
    let connection: WorkerConnection | undefined;
    await eventually("the worker listens", async () => {
      connection = await WorkerConnection.open({ path: socket }, hello, events).catch(() => undefined);
      return connection !== undefined;
    });
    connection!.sendJson(MESSAGE.INIT, 0, {
      api_id: "v1",
      project: dir,
      path: "predictor.py",
      api_config: JSON.stringify({ log }),
      concurrency: 100,
      threads,
      expose_errors: false,
      pass_credentials: false,
    });
    await eventually("the worker is ready", () => isReady);
  }

  function open(names: string[], fields: Partial<ApiRoute> = {}): void {
    const deps = {
      kill: () => {},
      replace: ({ worker_id }: { worker_id: string }) => replaced.push(worker_id),
      wake: () => {},
      onDeadline: () => {},
      broken: (_: unknown, why: string) => broken.push(why),
    };
    pool = new ApiPool(route(names, fields), deps);
  }

  const arrived = (parts: Buffer[]) => ({
    ...{ startedMs: performance.now(), requestId: "r", parts },
    ...{ bodyDone: () => {}, isStillOpen: () => true },
  });
  /** `bytes`: white space that the body has beside. */
  function submit(payload: unknown, bytes = 0): PredictionRequest {
    const body = [Buffer.alloc(bytes, " "), Buffer.from(JSON.stringify(payload))];
    const prediction = new PredictionRequest(undefined, arrived(body), undefined, false);
    pool.submit(prediction);
    return prediction;
  }
  /** Resolves when its first piece has come. */
  async function stream(needsKey: boolean): Promise<PredictionRequest> {
    const body = [Buffer.from(JSON.stringify({ id: "stream", stream_until: "end" }))];
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    const request = { ...arrived(body), isStillOpen: () => !needsKey || isStillOpen };
    const prediction = new PredictionRequest(response, request, undefined, true);
    pool.submit(prediction);
    await eventually("it streams", () => prediction.stream !== undefined);
    return prediction;
  }
  const allAnswered = (predictions: PredictionRequest[]) =>
    eventually("all are answered", () => predictions.every(({ isAnswered }) => isAnswered));

  it("does not run a request again that began out of the order of its id", async () => {
    await addWorker("a", 2);
    open(["a"]);
    // The first body is longer than the window: the short one arrives before it is whole, and begins first.
    const requests = [
      submit({ id: "long", until: "never" }, 3_000_000),
      submit({ id: "short", until: "long", die: true }),
      submit({ id: "third" }),
    ];
    await eventually("the worker is dead", () => workers[0]!.signalCode === "SIGKILL");
    await addWorker("b", 2);
    pool.update(route(["b"]));
    await allAnswered(requests);
    expect(begun()).toEqual(["short", "long", "third"]);
  });

  it("sends a request to another replica if part of its body was not yet sent", async () => {
    await addWorker("a", 1);
    open(["a"]);
    // While the short one runs, nothing is read: no more of the long body is asked for.
    const requests = [submit({ id: "long" }, 5_000_000), submit({ id: "short", die: true })];
    await eventually("the worker is dead", () => workers[0]!.signalCode === "SIGKILL");
    await addWorker("b", 1);
    pool.update(route(["b"]));
    await allAnswered(requests);
    expect(begun()).toEqual(["short", "long"]);
  });

  it("applies each request's own timeout, whatever came before it", async () => {
    await addWorker("a", 2);
    open(["a"]);
    const older = submit({ id: "older", until: "end" });
    await eventually("it runs", () => begun().includes("older"));
    pool.update(route(["a"], { timeout_ms: 500 }));
    const newer = submit({ id: "newer", until: "end" });
    await eventually("it runs", () => begun().includes("newer"));
    expect(newer.isAnswered).toBe(false);
    pool.expire(performance.now() + 1_000);
    expect([newer.isAnswered, older.isAnswered]).toEqual([true, false]);
    writeFileSync(log, "end\n");
    await allAnswered([older]);
  });

  it("says where the time of a request ran out: in predict(), or before it at its replica", async () => {
    await addWorker("a", 1);
    open(["a"]);
    const fails = ["runs", "waits"].map((id) => vi.spyOn(submit({ id, until: "end" }), "fail"));
    await eventually("one runs", () => begun().includes("runs"));
    pool.expire(performance.now() + 120_000);
    expect(fails.map(({ mock }) => `${mock.calls[0]![0].code}: ${mock.calls[0]![0].message}`)).toEqual([
      expect.stringMatching(
        /^prediction_timeout: .* ran out in predict\(\); it had come to a replica after \d+ ms$/,
      ),
      expect.stringMatching(/^prediction_timeout: .* ran out while it waited for the predictions before it/),
    ]);
  });

  it("ends a stream whose key ended before its first piece, but not one that needed no key", async () => {
    await addWorker("a", 2);
    open(["a"]);
    isStillOpen = false;
    const streams = [await stream(true), await stream(false)];
    pool.expire(performance.now() + STREAM_POLL_MS);
    expect(streams.map(({ isAnswered }) => isAnswered)).toEqual([true, false]);
    writeFileSync(log, "end\n");
    await allAnswered(streams);
  });

  it("keeps the replica of a stream whose key ends until a piece would time out", async () => {
    await addWorker("a", 2);
    open(["a"]);
    const ended = await stream(true);
    isStillOpen = false;
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    try {
      pool.expire(performance.now() + STREAM_POLL_MS);
      vi.advanceTimersByTime(CANCEL_GRACE_MS);
      expect([ended.isAnswered, replaced]).toEqual([true, []]);
      pool.expire(performance.now() + pool.route.timeout_ms);
      vi.advanceTimersByTime(CANCEL_GRACE_MS);
      expect(replaced).toEqual(["a"]);
    } finally {
      vi.useRealTimers();
    }
  });

  it("sends requests whose metadata take long a few in each turn of the event loop, in order", async () => {
    const worker = await fakeWorker(join(dir, "a.sock"), "ready", () => []);
    const sent: { id: number; turn: number }[] = [];
    let turn = 0;
    let isOver = false;
    const count = (): void => {
      turn++;
      if (!isOver) setImmediate(count);
    };
    count();
    const metaFor = (id: number) => () => {
      for (const end = performance.now() + 2; performance.now() < end; );
      sent.push({ id, turn });
      return "{}";
    };
    const ids = Array.from({ length: 50 }, (_, id) => id);
    open(["a"], { parallel: 1_000, capacity: 1_000, wants: ["headers"] });
    for (const id of ids)
      pool.submit(new PredictionRequest(undefined, arrived([]), { metaFor: metaFor(id) }, false));
    await eventually("all are sent", () => sent.length === ids.length);
    isOver = true;
    expect(sent.map(({ id }) => id)).toEqual(ids);
    const mostInTurn = Math.max(
      ...ids.map((at) => sent.filter((each) => each.turn === sent[at]!.turn).length),
    );
    expect(mostInTurn).toBeLessThanOrEqual(5);
    pool.retire();
    worker.close();
  });

  it("fails the requests of a replica that died a few in each turn of the event loop", async () => {
    const worker = await fakeWorker(join(dir, "a.sock"), "ready", () => []);
    const connections: Socket[] = [];
    worker.on("connection", (connection: Socket) => connections.push(connection));
    open(["a"], { parallel: 1_000, capacity: 1_000 });
    const requests = Array.from({ length: 5 * LOST_AT_ONCE_MAX }, (_, id) => submit({ id }));
    await eventually("all are sent", () => pool.waitingCount === 0);
    const left = () => requests.filter(({ isAnswered }) => !isAnswered).length;
    const longest = new Promise<number>((resolve) => {
      let most = 0;
      const look = (before: number): void => {
        most = Math.max(most, before - left());
        if (left() === 0) resolve(most);
        else setImmediate(look, left());
      };
      look(left());
    });
    worker.close();
    for (const connection of connections) connection.destroy();
    // This may look once in two turns.
    expect(await longest).toBeLessThanOrEqual(2 * LOST_AT_ONCE_MAX);
    expect(pool.underWay).toBe(0);
  });

  it("releases answered requests behind one that is unanswered", async () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc") as () => void;
    await addWorker("a", 2);
    open(["a"]);
    const running = submit({ id: "running", until: "end" });
    await eventually("it runs", () => begun().includes("running"));
    const ended = Array.from({ length: 50 }, (_, id) => new WeakRef(submit({ id: `e${id}` })));
    await eventually("only it is under way", () => pool.underWay === 1);
    await eventually("they are forgotten", () => {
      collect();
      return ended.every((reference) => reference.deref() === undefined);
    });
    expect(running.isAnswered).toBe(false);
    writeFileSync(log, "end\n");
    await allAnswered([running]);
  });
});
