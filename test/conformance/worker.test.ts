/** One suite for the worker, over a Unix socket, TCP and TLS: what docs/worker-protocol.md promises. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { STREAM_PIECE_BYTES, STREAM_WINDOW_BYTES } from "../../src/contracts/limits/frames.ts";
import { decodeAck } from "../../src/protocol/ack.ts";
import type { WorkerAddress } from "../../src/protocol/connect-socket.ts";
import { readDeliveryNote, runsForMs } from "../../src/protocol/delivery-note.ts";
import {
  decodeRelease,
  decodeResult,
  encodeByteCount,
  MESSAGE,
  PROTOCOL_VERSION,
} from "../../src/protocol/messages.ts";
import { WorkerConnection } from "../../src/protocol/worker-connection.ts";
import { makeCertificate } from "../harness/certificates.ts";
import { eventually } from "../harness/eventually.ts";
import { OBEDIENT } from "../harness/projects.ts";
import { root } from "../harness/server.ts";

const TOKEN = "f00d";
/** The window of a stream before the first CREDIT. */
const STREAM_FIRST_BYTES = 16 * 1024;
const NAMES = Object.fromEntries(Object.entries(MESSAGE).map(([name, type]) => [type, name]));

interface Received {
  name: string;
  id: number;
  body: Buffer;
}

class Caller {
  readonly received: Received[] = [];
  private readonly unanswered = new Set<number>();
  private readonly streaming = new Set<number>();
  isClosed = false;
  connection!: WorkerConnection;

  static async open(
    address: WorkerAddress,
    role: "controller" | "gateway" = "controller",
    epoch = 1,
    token = TOKEN,
  ): Promise<Caller> {
    const caller = new Caller();
    caller.connection = await WorkerConnection.open(
      address,
      { role, token, epoch },
      {
        expects: (type, id) => (type === MESSAGE.CHUNK ? caller.streaming : caller.unanswered).has(id),
        onMessage: (type, id, body) => caller.take(NAMES[type]!, id, body),
        onClose: () => {
          caller.isClosed = true;
        },
      },
    );
    return caller;
  }

  private take(name: string, id: number, body: Buffer): void {
    this.received.push({ name, id, body: Buffer.from(body) });
    if (name === "CHUNK") return;
    this.unanswered.delete(id);
    if (name === "STREAM") this.streaming.add(id);
    else this.streaming.delete(id);
  }

  predict(id: number, payload: unknown, meta?: unknown): void {
    this.unanswered.add(id);
    if (meta !== undefined) this.connection.sendJson(MESSAGE.META, id, meta);
    this.connection.send(MESSAGE.PREDICT, id, Buffer.from(JSON.stringify(payload)));
  }

  lease(firstDelivery: number, batches: [number, unknown][]): void {
    const parts = batches.flatMap(([index, items]) => {
      const payload = Buffer.from(JSON.stringify(items));
      const head = Buffer.alloc(8);
      head.writeUInt32LE(index);
      head.writeUInt32LE(payload.length, 4);
      return [head, payload];
    });
    this.connection.send(MESSAGE.LEASE, firstDelivery, Buffer.concat(parts));
  }

  async next(name: string, id?: number): Promise<Received> {
    const matches = (message: Received) => message.name === name && (id === undefined || message.id === id);
    await eventually(
      `${name} ${id ?? ""} comes`,
      () => this.received.some(matches),
      20_000,
      () =>
        this.received
          .map((message) => `${message.name} ${message.id} ${message.body.toString().slice(0, 300)}`)
          .join("; "),
    );
    return this.received.splice(this.received.findIndex(matches), 1)[0]!;
  }

  /** A streamed answer to its end, each piece granted as it comes. */
  async streamed(id: number): Promise<Buffer[]> {
    await this.next("STREAM", id);
    const pieces: Buffer[] = [];
    for (;;) {
      await eventually(
        "the stream goes on",
        () => this.received.some((message) => message.id === id),
        20_000,
      );
      const at = this.received.findIndex((message) => message.id === id);
      const { name, body } = this.received.splice(at, 1)[0]!;
      if (name !== "CHUNK") return pieces;
      pieces.push(body);
      this.connection.send(MESSAGE.CREDIT, id, encodeByteCount(body.length + STREAM_PIECE_BYTES));
    }
  }

  async result(id: number): Promise<unknown> {
    return JSON.parse(decodeResult((await this.next("RESULT", id)).body).body.toString());
  }
}

describe.each(["unix", "tcp", "tls"] as const)("a worker over %s", (kind) => {
  let dir: string;
  const certificates = kind === "tls" ? mkdtempSync(join(tmpdir(), "quern-certificate-")) : undefined;
  const files = certificates === undefined ? undefined : makeCertificate(certificates);
  afterAll(() => {
    if (certificates !== undefined) rmSync(certificates, { recursive: true });
  });
  let address: WorkerAddress;
  let process: ChildProcess;
  let note: string;

  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), "quern-worker-"));
    note = join(dir, "note");
    writeFileSync(join(dir, "predictor.py"), OBEDIENT);
    address = kind === "unix" ? { path: join(dir, "w.sock") } : { host: "127.0.0.1", port: await freePort() };
    if (files !== undefined && "host" in address)
      address = { ...address, tls: { ca: readFileSync(files.cert, "utf8") }, serverName: "quern" };
    start();
    await eventually("the worker listens", () => kind !== "unix" || existsSync(join(dir, "w.sock")));
  });
  afterEach(() => {
    process.kill("SIGKILL");
    rmSync(dir, { recursive: true, force: true });
  });

  /** `first`: Python that runs before the worker does. */
  function start(first = ""): void {
    const listen = "path" in address ? `unix:${address.path}` : `${kind}:${address.host}:${address.port}`;
    const identity = files === undefined ? [] : ["--certificate", files.cert, "--key", files.key];
    const boot = `${first}\nfrom quern_runtime.__main__ import main; main()`;
    process = spawn("python3", ["-c", boot, "--listen", listen, "--note", note, ...identity], {
      cwd: join(root, "python"),
      env: { ...globalThis.process.env, QUERN_WORKER_TOKEN: TOKEN },
      stdio: "ignore",
    });
  }

  /** Connects as soon as the worker listens. */
  async function caller(role: "controller" | "gateway" = "controller", epoch = 1): Promise<Caller> {
    let found: Caller | undefined;
    await eventually("the worker answers", async () => {
      found = await Caller.open(address, role, epoch).catch((error: Error) => {
        if (error.message.includes("refused the")) throw error;
        return undefined;
      });
      return found !== undefined;
    });
    return found!;
  }

  async function ready(init: Record<string, unknown> = {}): Promise<Caller> {
    const controller = await caller();
    controller.connection.sendJson(MESSAGE.INIT, 0, {
      api_id: "v1",
      project: dir,
      path: "predictor.py",
      api_config: "{}",
      concurrency: 4,
      expose_errors: false,
      pass_credentials: false,
      ...init,
    });
    await controller.next("READY");
    return controller;
  }

  const readyForJob = () => ready({ job_spec: { job_id: "j" } });

  it("refuses a wrong token and another protocol version", async () => {
    await caller();
    await expect(Caller.open(address, "controller", 1, "guess")).rejects.toThrow("wrong token");
  });

  it("describes itself in WELCOME, before and after its set-up", async () => {
    const controller = await caller();
    expect(controller.connection.welcome).toMatchObject({
      protocol: PROTOCOL_VERSION,
      pid: process.pid,
      state: "new",
      api_id: null,
      died_in: null,
    });
    await ready();
    const gateway = await caller("gateway", 0);
    expect(gateway.connection.welcome).toMatchObject({ state: "ready", api_id: "v1", wants: [] });
  });

  it("reports why its set-up failed, then exits", async () => {
    writeFileSync(
      join(dir, "predictor.py"),
      "class PythonPredictor:\n  def __init__(self, config): raise OSError('no model')\n  def predict(self): pass\n",
    );
    const controller = await caller();
    controller.connection.sendJson(MESSAGE.INIT, 0, {
      api_id: "v1",
      project: dir,
      path: "predictor.py",
      api_config: "{}",
      concurrency: 4,
      expose_errors: false,
      pass_credentials: false,
    });
    const fault = JSON.parse((await controller.next("INIT_FAILED")).body.toString()) as Record<
      string,
      string
    >;
    expect(fault).toMatchObject({ stage: "init", type: "OSError", message: "no model" });
    expect(fault.traceback).toContain("predictor.py");
    await eventually("it has left", () => process.exitCode === 0);
  });

  it("obeys the newest epoch only: it disconnects the previous owner and refuses an older one", async () => {
    const old = await ready();
    await caller("controller", 5);
    await eventually("the old owner is cut off", () => old.isClosed);
    await expect(Caller.open(address, "controller", 4)).rejects.toThrow("epoch 4 is over");
  });

  it("predicts for several gateways, and reports failed predictions", async () => {
    await ready();
    const [a, b] = [await caller("gateway"), await caller("gateway")];
    a.predict(1, { id: "a" });
    b.predict(1, { id: "b" });
    a.predict(2, { do: "raise", id: 3 });
    a.connection.send(MESSAGE.PREDICT, 3, Buffer.from("{"));
    expect([await a.result(1), await b.result(1)]).toEqual(["a", "b"]);
    expect(JSON.parse((await a.next("ERROR", 2)).body.toString())).toMatchObject({
      stage: "predict",
      type: "ValueError",
      message: "no good: 3",
    });
    expect(JSON.parse((await a.next("ERROR", 3)).body.toString())).toMatchObject({ stage: "payload" });
  });

  it("passes query and headers to a predictor that declares them", async () => {
    writeFileSync(
      join(dir, "predictor.py"),
      "class PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload, query_params, headers): return [payload, query_params, headers]\n",
    );
    await ready();
    const gateway = await caller("gateway");
    expect(gateway.connection.welcome.wants).toEqual(["query_params", "headers"]);
    gateway.predict(1, 7, { query_params: [["q", "1"]], headers: { h: "2" } });
    expect(await gateway.result(1)).toEqual([7, { q: "1" }, { h: "2" }]);
  });

  it("transfers long bodies in windows in both directions, beside short ones", async () => {
    await ready();
    const gateway = await caller("gateway");
    const text = "z".repeat(9_000_000);
    gateway.predict(1, { id: text });
    gateway.predict(2, { id: "short" });
    expect(await gateway.result(2)).toBe("short");
    expect(JSON.parse(Buffer.concat(await gateway.streamed(1)).toString())).toBe(text);
  });

  it("produces no more stream pieces than the window allows, and few before the first are taken", async () => {
    writeFileSync(
      join(dir, "predictor.py"),
      "class PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload):\n    if payload: return payload\n    return iter(str, None)\n",
    );
    await ready();
    const gateway = await caller("gateway");
    gateway.predict(1, 0);
    await gateway.next("STREAM", 1);
    const pieceBytes = STREAM_PIECE_BYTES + '""'.length;
    const first = Math.ceil(STREAM_FIRST_BYTES / pieceBytes);
    const room = Math.ceil(STREAM_WINDOW_BYTES / pieceBytes);
    const full = async (id: number, pieces: number) => {
      await eventually("the window is full", () => gateway.received.length >= pieces);
      gateway.predict(id, 7);
      expect(await gateway.result(id)).toBe(7);
      expect(gateway.received).toHaveLength(pieces);
    };
    await full(2, first);
    gateway.connection.send(MESSAGE.CREDIT, 1, encodeByteCount(first * pieceBytes));
    await full(3, first + room);
    gateway.connection.send(MESSAGE.CREDIT, 1, encodeByteCount(10 * pieceBytes));
    await full(4, first + room + 10);
  });

  it("answers BUSY beyond its concurrency, and drops requests that are cancelled before they begin", async () => {
    await ready();
    const gateway = await caller("gateway");
    gateway.predict(1, { do: "sleep", seconds: 0.5, id: 1 });
    await eventually("the first has begun", () => readDeliveryNote(note)?.busy === true);
    for (let id = 2; id <= 7; id++) gateway.predict(id, { do: "sleep", seconds: 0, id });
    gateway.connection.cancel(3);
    expect(await gateway.result(1)).toBe(1);
    const busy = [await gateway.next("BUSY"), await gateway.next("BUSY"), await gateway.next("BUSY")].map(
      (message) => message.id,
    );
    expect(busy).toEqual([6, 7, 3]);
    expect([await gateway.result(2), await gateway.result(4), await gateway.result(5)]).toEqual([2, 4, 5]);
    expect(gateway.received.some((message) => message.id === 3)).toBe(false);
  });

  it("starts slow deliveries with START, and acknowledges cumulatively", async () => {
    const controller = await readyForJob();
    controller.lease(1, [
      [10, [{ id: 1 }]],
      [11, [{ do: "raise", id: 2 }]],
      [12, [{ id: 3 }]],
    ]);
    expect((await controller.next("START")).id).toBe(1);
    const acks = [];
    for (let settled = 0; settled < 3; ) {
      const message = await controller.next("ACK");
      const ack = decodeAck(message.id, message.body);
      settled += ack.succeeded + ack.failures.length;
      acks.push(ack);
    }
    expect(acks[acks.length - 1]!.upTo).toBe(3);
    expect(acks.flatMap((ack) => ack.failures)).toMatchObject([
      { delivery: 2, fault: { type: "ValueError", message: "no good: 2" } },
    ]);
  });

  it("releases batches that it has not started after a slow batch", async () => {
    const controller = await readyForJob();
    controller.lease(1, [
      [0, [{ do: "sleep", seconds: 0.1 }]],
      [1, [1]],
      [2, [2]],
    ]);
    const release = await controller.next("RELEASE");
    expect(decodeRelease(release.id, release.body)).toEqual({ first: 2, last: 3 });
    const ack = await controller.next("ACK");
    expect(decodeAck(ack.id, ack.body)).toMatchObject({ upTo: 1, succeeded: 1 });
    controller.lease(4, [[1, [1]]]);
    expect((await controller.next("ACK")).id).toBe(4);
  });

  it("leaves a note of its current batch, which the worker's next process reports", async () => {
    const controller = await readyForJob();
    controller.lease(1, [
      [40, [1]],
      [41, [{ do: "kill" }]],
      [42, [2]],
    ]);
    await eventually("it has died", () => process.signalCode === "SIGKILL");
    expect(readDeliveryNote(note)).toMatchObject({
      busy: true,
      delivery: 2,
      batch_index: 41,
      epoch: 1,
      connection: controller.connection.welcome.connection,
    });
    if ("path" in address) rmSync(address.path, { force: true });
    start();
    expect((await caller()).connection.welcome.died_in).toEqual({ epoch: 1, delivery: 2, batch_index: 41 });
  });

  it("prevents a forked child from answering or holding its sockets", async () => {
    await ready();
    const gateway = await caller("gateway");
    gateway.predict(1, { do: "fork", id: "parent" });
    gateway.predict(2, { do: "child", id: "with a child" });
    gateway.predict(3, { do: "linger", id: "with a child of its own" });
    const answers = [await gateway.result(1), await gateway.result(2), await gateway.result(3)];
    expect(answers).toEqual(["parent", "with a child", "with a child of its own"]);
    process.kill("SIGKILL");
    await eventually("the connection is closed with the process", () => gateway.isClosed, 2_000);
    expect(gateway.received).toEqual([]);
  });

  it("does not answer while user code holds the interpreter, and continues afterwards", async () => {
    const controller = await readyForJob();
    controller.lease(1, [[0, [{ do: "hold", seconds: 2 }]]]);
    await eventually("it has begun", () => readDeliveryNote(note)?.busy === true);
    const late = caller("gateway");
    expect((await controller.next("ACK")).id).toBe(1);
    expect((await late).connection.welcome.state).toBe("ready");
  });

  it("notes for how long user code has run", async () => {
    const gateway = (await ready()) && (await caller("gateway"));
    expect(runsForMs(readDeliveryNote(note))).toBe(0);
    const sentMs = performance.now();
    gateway.predict(1, { do: "hold", seconds: 1.5 });
    await eventually("it has run for a second", () => runsForMs(readDeliveryNote(note)) > 1_000);
    expect(runsForMs(readDeliveryNote(note))).toBeLessThan(performance.now() - sentMs);
    await gateway.result(1);
    await eventually("it runs no more", () => runsForMs(readDeliveryNote(note)) === 0);
    expect(runsForMs(undefined)).toBe(Number.POSITIVE_INFINITY);
  });

  it("finishes its requests when it is drained", async () => {
    const controller = await ready();
    const gateway = await caller("gateway");
    gateway.predict(1, { do: "sleep", seconds: 0.3, id: "last" });
    await eventually("it has begun", () => readDeliveryNote(note)?.busy === true);
    controller.connection.sendJson(MESSAGE.DRAIN, 0, {});
    expect(await gateway.result(1)).toBe("last");
    await eventually("it has left", () => process.exitCode === 0);
  });

  it("answers BUSY after it was drained, until its gateways have closed their connections", async () => {
    const controller = await ready();
    const gateway = await caller("gateway");
    controller.connection.sendJson(MESSAGE.DRAIN, 0, {});
    // It may read the first one before the DRAIN.
    gateway.predict(1, {});
    await eventually("it has answered", () => gateway.received.some(({ id }) => id === 1));
    gateway.predict(2, {});
    await gateway.next("BUSY", 2);
    const next = await caller("controller", 2);
    expect(next.connection.welcome.state).toBe("draining");
    gateway.connection.close();
    await eventually("it has left", () => process.exitCode === 0);
  });

  it("leaves two seconds after it was drained, although a gateway stays", async () => {
    const controller = await ready();
    await caller("gateway");
    controller.connection.sendJson(MESSAGE.DRAIN, 0, {});
    await eventually("it has left", () => process.exitCode === 0, 10_000);
  });

  it("ends with its controller, after the current batch, if it belongs to a job", async () => {
    const controller = await readyForJob();
    controller.lease(1, [
      [0, [{ do: "sleep", seconds: 0.3 }]],
      [1, [1]],
    ]);
    await eventually("it has begun", () => readDeliveryNote(note)?.busy === true);
    controller.connection.close();
    await eventually("it has left", () => process.exitCode === 0, 5_000);
    expect(readDeliveryNote(note)).toMatchObject({ busy: false, delivery: 1 });
  });

  it("exits after its maximum time without a connection", async () => {
    process.kill("SIGKILL");
    if ("path" in address) rmSync(address.path, { force: true });
    start("import quern_runtime.worker as w; w.ORPHAN_EXIT_S = 1");
    const gateway = await caller("gateway");
    gateway.connection.close();
    await eventually("it has left", () => process.exitCode === 0, 10_000);
  });

  it("runs on_job_complete on request", async () => {
    writeFileSync(
      join(dir, "predictor.py"),
      "class PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload): pass\n  def on_job_complete(self): raise OSError('disk')\n",
    );
    const controller = await readyForJob();
    controller.connection.sendJson(MESSAGE.JOB_COMPLETE, 9, { round: 1 });
    expect(JSON.parse((await controller.next("ERROR", 9)).body.toString())).toMatchObject({
      stage: "on_job_complete",
      message: "disk",
    });
  });

  it("gives user code the number of batches before the first batch, once all are enqueued", async () => {
    writeFileSync(
      join(dir, "predictor.py"),
      `import json
class PythonPredictor:
  def __init__(self, config, job_spec):
    self.spec, self.seen = job_spec, [job_spec["total_batch_count"]]
  def predict(self, payload, job_spec): self.seen.append(job_spec["total_batch_count"])
  def on_job_complete(self, job_spec):
    raise OSError(json.dumps([self.seen, self.spec["total_batch_count"], job_spec["total_batch_count"]]))
`,
    );
    const controller = await ready({ job_spec: { job_id: "j", total_batch_count: null } });
    controller.connection.sendJson(MESSAGE.ENQUEUED, 0, { total_batch_count: 1 });
    controller.lease(1, [[0, [{ id: 1 }]]]);
    const { id, body } = await controller.next("ACK");
    expect(decodeAck(id, body)).toMatchObject({ succeeded: 1, failures: [] });
    controller.connection.sendJson(MESSAGE.JOB_COMPLETE, 9, { round: 1 });
    const { message } = JSON.parse((await controller.next("ERROR", 9)).body.toString()) as {
      message: string;
    };
    expect(JSON.parse(message)).toEqual([[null, 1], 1, 1]);
  });

  it("goes on with another job, on another connection of its controller, with a new predictor", async () => {
    writeFileSync(
      join(dir, "predictor.py"),
      `MADE = []
class PythonPredictor:
  def __init__(self, config, job_spec):
    MADE.append(job_spec["job_id"])
    print("made for", MADE[-1])
  def predict(self, payload, batch_id): raise OSError(batch_id + " of " + " ".join(MADE))
`,
    );
    const first = await ready({ job_spec: { job_id: "a" }, may_be_reused: true });
    const log = join(dir, "b.log");
    const second = await ready({ job_spec: { job_id: "b" }, may_be_reused: true, log_file: log });
    await eventually("the first connection is closed", () => first.isClosed);
    second.lease(1, [[7, [1]]]);
    const { id, body } = await second.next("ACK");
    expect(decodeAck(id, body).failures).toMatchObject([{ fault: { message: "b-7 of a b" } }]);
    expect(readFileSync(log, "utf8")).toMatch(/^\S+Z made for b\n/);
  });

  it("closes a connection that breaks the protocol, and serves the others", async () => {
    await ready();
    const { createConnection } = await import("node:net");
    const stranger = createConnection(address);
    const closed = new Promise((resolve) => stranger.once("close", resolve));
    stranger.on("error", () => {}).write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await closed;
    // An id that is in use: otherwise any number would wait, whatever the replica's concurrency is.
    const twice = await caller("gateway");
    twice.predict(1, { do: "sleep", seconds: 0.1, id: "slow" });
    twice.predict(1, { id: "again" });
    await eventually("the connection is closed", () => twice.isClosed);
    const gateway = await caller("gateway");
    gateway.predict(1, { id: "fine" });
    expect(await gateway.result(1)).toBe("fine");
  });
});

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
