/**
 * A replica that answers three requests with anything: the gateway's pool, over a real socket, with real HTTP clients. Each client
 * gets an answer or sees its connection end, and what it gets is HTTP.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import type { AddressInfo, Server as SocketServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ApiRoute } from "../../../src/contracts/routes.ts";
import { PredictionRequest } from "../../../src/gateway/answers/prediction-request.ts";
import { ApiPool } from "../../../src/gateway/replicas/api-pool.ts";
import { MESSAGE } from "../../../src/protocol/messages.ts";
import { Finding, mustHold, type Target } from "../target.ts";
import { FRAME_WORDS, fixtureFrames, frame, listenAsWorker } from "../wire.ts";

const REQUESTS = 3;
const dir = mkdtempSync(join(tmpdir(), "quern-fuzz-"));
const path = join(dir, "worker.sock");
const replica = {
  worker_id: "w",
  pid: 1,
  process_start: "0",
  socket: path,
  token: "t",
  note: join(dir, "note"),
};
const route: ApiRoute = {
  ...{
    name: "api",
    endpoint: "/api",
    is_public: true,
    cors_origins: [],
    needs_key: false,
    kind: "RealtimeAPI",
  },
  ...{
    api_id: "v1",
    status: "live",
    timeout_ms: 60_000,
    capacity: 100,
    parallel: REQUESTS,
    is_blocking: false,
  },
  ...{ can_sleep: false, expose_errors: false, pass_credentials: false, wants: [], replicas: [replica] },
};
const nothing = () => {};
const deps = {
  ...{ kill: nothing, replace: nothing, wake: nothing, onDeadline: nothing, broken: nothing },
};

let http: Server;
let worker: SocketServer;
/** The state of the current input. */
let pool: ApiPool;
let answers: Buffer = Buffer.alloc(0);
let asked = 0;
/** An input that begins so has its WELCOME up to the next NUL. */
const WELCOME_MARK = 0x57;
let welcome: Buffer | undefined;

async function setUp(): Promise<() => Promise<void>> {
  worker = await listenAsWorker(
    path,
    (socket, type) => {
      if (type === MESSAGE.PREDICT && ++asked === REQUESTS) socket.end(answers);
    },
    () => welcome,
  );
  http = createServer((incoming, response) => {
    const wantsEvents = incoming.headers.accept === "text/event-stream";
    const arrived = { startedMs: performance.now(), requestId: "r", parts: [Buffer.from("1")] };
    const owner = { ...arrived, bodyDone: nothing, isStillOpen: () => true };
    pool.submit(new PredictionRequest(response, owner, undefined, wantsEvents));
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  return async () => {
    for (const server of [http, worker]) server.close();
    rmSync(dir, { recursive: true });
  };
}

/** Resolves when the client has its answer, or its connection has ended. */
function ask(accept: string): Promise<void> {
  const { port } = http.address() as AddressInfo;
  return new Promise((resolve, reject) => {
    const outgoing = request({ port, host: "127.0.0.1", agent: false, headers: { accept } });
    const ended = (error?: NodeJS.ErrnoException) =>
      error?.code?.startsWith("HPE_")
        ? reject(new Finding(`the client cannot read the answer: ${error.message}`))
        : resolve();
    outgoing.once("response", (response: IncomingMessage) => {
      response.resume();
      response.once("end", () => ended());
      response.once("error", ended);
      response.once("close", () => ended());
    });
    outgoing.once("error", ended);
    outgoing.end();
  });
}

async function run(input: Buffer): Promise<undefined> {
  const end = input.indexOf(0);
  welcome = input[0] === WELCOME_MARK && end > 0 ? input.subarray(1, end) : undefined;
  answers = welcome === undefined ? input : input.subarray(end + 1);
  asked = 0;
  pool = new ApiPool(route, deps);
  const hasLeft = new Promise<void>((resolve) => {
    worker.once("connection", (socket) => socket.once("close", () => resolve()));
  });
  const clients = Promise.all(["*/*", "*/*", "text/event-stream"].map(ask));
  await hasLeft;
  // Requests that wait for another replica are told that none is left, whenever they come.
  const retiring = setInterval(() => pool.retire(), 5);
  await clients.finally(() => clearInterval(retiring));
  pool.retire();
  mustHold(pool.underWay === 0, `${pool.underWay} requests are still under way`);
  return undefined;
}

const result = (id: number, head: string, body: string) => {
  const lengths = Buffer.alloc(8);
  lengths.writeUInt32LE(Buffer.byteLength(head), 4);
  return frame(MESSAGE.RESULT, id, Buffer.concat([lengths, Buffer.from(head + body)]));
};

export const answersOfReplicas: Target = {
  dictionary: [
    ...FRAME_WORDS,
    '{"headers":[["content-length","1"]]}',
    '"transfer-encoding"',
    "\\r\\n",
    "\\u0000",
    "\\u20ac",
    '"status":204',
  ],
  maxBytes: 64 * 1024,
  covers: /\/src\/(gateway|protocol)\//,
  seeds: () => [
    ...fixtureFrames((type) => type > MESSAGE.WELCOME),
    Buffer.concat([
      result(1, "", "1"),
      result(2, '{"status":201,"headers":[["content-type","text/plain"]]}', "x"),
      frame(MESSAGE.STREAM, 3, '{"format":"json","headers":[["x-a","b"]]}'),
      frame(MESSAGE.CHUNK, 3, "{}"),
      frame(MESSAGE.END, 3),
    ]),
    Buffer.concat([
      frame(MESSAGE.STREAM, 1, '{"format":"raw","status":206,"headers":[["content-length","3"]]}'),
      frame(MESSAGE.CHUNK, 1, "abc", 1),
      frame(MESSAGE.CHUNK, 1, "d"),
      frame(
        MESSAGE.ERROR,
        2,
        '{"stage":"predict","type":"T","message":"m","traceback":"","status_code":422,"detail":[1]}',
      ),
      frame(MESSAGE.BUSY, 3),
    ]),
  ],
  setUp,
  run,
};
