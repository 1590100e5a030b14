/** A real worker process of its own, without a server: at a Unix socket, TCP or TLS. And a caller that predicts there. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { WorkerAddress } from "../../src/protocol/connect-socket.ts";
import { decodeResult, MESSAGE } from "../../src/protocol/messages.ts";
import { WorkerConnection } from "../../src/protocol/worker-connection.ts";
import { makeCertificate } from "./certificates.ts";
import { eventually } from "./eventually.ts";
import { freePort } from "./faulty-proxy.ts";
import { root } from "./server.ts";

export type WorkerKind = "unix" | "tcp" | "tls";

export const WORKER_TOKEN = "f00d";
const ECHO =
  "class PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload): return payload\n";

export class StartedWorker {
  readonly directory = mkdtempSync(join(tmpdir(), "quern-worker-"));
  readonly kind: WorkerKind;
  output = "";
  port = 0;
  process!: ChildProcess;

  /** `first`: Python that runs before the worker does. */
  static async start(kind: WorkerKind, predictor = ECHO, first = ""): Promise<StartedWorker> {
    const worker = new StartedWorker(kind);
    writeFileSync(join(worker.directory, "predictor.py"), predictor);
    if (kind === "tls") makeCertificate(worker.directory);
    worker.port = await freePort();
    worker.run(first);
    return worker;
  }

  private constructor(kind: WorkerKind) {
    this.kind = kind;
  }

  get address(): WorkerAddress {
    if (this.kind === "unix") return { path: join(this.directory, "w.sock") };
    const { port } = this;
    return this.kind === "tcp" ? { host: "127.0.0.1", port } : this.tlsAddress(port);
  }

  /** Also of a proxy in front of it. */
  tlsAddress(port: number): WorkerAddress {
    const ca = readFileSync(join(this.directory, "cert.pem"), "utf8");
    return { host: "127.0.0.1", port, tls: { ca }, serverName: "quern" };
  }

  /** Connects as soon as it listens. */
  async call(role: "controller" | "gateway", address = this.address): Promise<PredictingCaller> {
    let caller: PredictingCaller | undefined;
    await eventually("the worker answers", async () => {
      caller = await PredictingCaller.open(address, role).catch(() => undefined);
      return caller !== undefined;
    });
    return caller!;
  }

  /** Its class is loaded. Keep the controller: a worker that belongs to nobody ends. */
  async ready(): Promise<PredictingCaller> {
    const controller = await this.call("controller");
    controller.connection.sendJson(MESSAGE.INIT, 0, {
      ...{ api_id: "v1", project: this.directory, path: "predictor.py", api_config: "{}", concurrency: 100 },
      ...{ expose_errors: false, pass_credentials: false },
    });
    await eventually("it is ready", () => controller.isReady);
    return controller;
  }

  stop(): void {
    this.process.kill("SIGKILL");
    rmSync(this.directory, { recursive: true, force: true });
  }

  private run(first: string): void {
    const file = (name: string) => join(this.directory, name);
    const listen = this.kind === "unix" ? `unix:${file("w.sock")}` : `${this.kind}:127.0.0.1:${this.port}`;
    const boot = `${first}\nfrom quern_runtime.__main__ import main; main()`;
    const identity = this.kind === "tls" ? ["--certificate", file("cert.pem"), "--key", file("key.pem")] : [];
    this.process = spawn("python3", ["-c", boot, "--listen", listen, "--note", file("note"), ...identity], {
      cwd: join(root, "python"),
      env: { ...process.env, QUERN_WORKER_TOKEN: WORKER_TOKEN },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [this.process.stdout!, this.process.stderr!])
      stream.setEncoding("utf8").on("data", (text: string) => {
        this.output += text;
      });
  }
}

interface Waiting {
  resolve: (body: Buffer) => void;
  reject: (error: Error) => void;
}

export class PredictingCaller {
  connection!: WorkerConnection;
  isReady = false;
  isClosed = false;
  private readonly waiting = new Map<number, Waiting>();
  private lastId = 0;

  static async open(address: WorkerAddress, role: "controller" | "gateway"): Promise<PredictingCaller> {
    const caller = new PredictingCaller();
    const hello = { role, token: WORKER_TOKEN, epoch: 1 };
    caller.connection = await WorkerConnection.open(
      address,
      hello,
      {
        expects: (_type, id) => caller.waiting.has(id),
        onMessage: (type, id, body) => caller.take(type, id, body),
        onClose: () => {
          caller.isClosed = true;
          for (const { reject } of caller.waiting.values()) reject(new Error("the connection ended"));
        },
      },
      5_000,
    );
    return caller;
  }

  /** The body of the response, which is a RESULT. Rejects for another one, or if the connection ends before. */
  predict(body: Buffer): Promise<Buffer> {
    const id = ++this.lastId;
    const answer = new Promise<Buffer>((resolve, reject) => this.waiting.set(id, { resolve, reject }));
    this.connection.send(MESSAGE.PREDICT, id, body);
    return answer;
  }

  private take(type: number, id: number, body: Buffer): void {
    if (type === MESSAGE.READY) this.isReady = true;
    const waiting = this.waiting.get(id);
    if (type === MESSAGE.WINDOW || waiting === undefined) return;
    this.waiting.delete(id);
    if (type === MESSAGE.RESULT) waiting.resolve(decodeResult(body).body);
    else waiting.reject(new Error(`a message of the type ${type}: ${body.toString()}`));
  }
}
