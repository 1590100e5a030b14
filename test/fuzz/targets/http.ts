/**
 * A real server: requests as raw bytes, and the cursors of its lists. For any input the answer is HTTP, Quern never
 * answers 500, and the same processes keep serving.
 */

import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";
import { Finding, mustEqual, mustHold, type Ran, type Target } from "../target.ts";

const PREDICTOR = `class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        if payload == ["fail"]: raise ValueError("as asked")
        return "predicted"
`;
/** In an input: the administrator's token, and the job that ran. */
const TOKEN = "TOKEN";
const JOB = "01JOBJOBJOBJOBJOBJOBJOBJOB";
const SILENCE_MS = 20_000;
const LOOK_EVERY = 200;

let server: TestServer;
let token: string;
let job: string;
let pids: number[];
let inputs = 0;

async function setUp(): Promise<() => Promise<void>> {
  server = new TestServer();
  await server.start();
  server.deploy(project(PREDICTOR));
  job = await server.submit("jobs", {
    workers: 1,
    item_list: { items: ["fail", "x", "fail"], batch_size: 1 },
  });
  await server.ended("jobs", job);
  token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
  pids = children();
  return () => server.stop();
}

const children = () => [server.child("gateway"), server.child("controller")];

/** The bytes that the server sends until it closes, or until nothing more is expected. */
function exchange(bytes: Buffer): Promise<Buffer> {
  const { hostname, port } = new URL(server.baseUrl);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Finding(`no answer and no end within ${SILENCE_MS} ms`));
    }, SILENCE_MS);
    const ended = () => {
      clearTimeout(timer);
      socket.destroy();
      resolve(Buffer.concat(chunks));
    };
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    socket.once("end", ended).once("error", ended).once("close", ended);
    socket.end(bytes);
  });
}

/** `status code` of each answer; a finding if it is not HTTP, or 500. */
function kindsOf(said: Buffer): string[] {
  const text = said.toString("latin1");
  mustHold(
    text === "" || /^HTTP\/1\.1 [1-5]\d\d [^\r\n]*\r\n/.test(text),
    `the answer is no HTTP: ${text.slice(0, 100)}`,
  );
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d\d\d) /g)].map(([, status]) => status!);
  const codes = [...text.matchAll(/"code":\s*"(\w+)"/g)].map(([, code]) => code!);
  if (statuses.includes("500") && !codes.every((code) => code.startsWith("prediction_")))
    throw new Finding(`a request is answered with 500: ${text.slice(0, 1000)}`);
  return statuses.map((status, i) => `${status} ${codes[i] ?? ""}`);
}

async function send(bytes: Buffer): Promise<Ran> {
  const features = kindsOf(await exchange(bytes));
  if (++inputs % LOOK_EVERY === 0) {
    mustEqual(children(), pids, "the server's processes, and those that it had");
    const { status } = await server.post("/echo", {});
    mustEqual(status, 200, "a plain prediction");
  }
  return { features };
}

/** Nothing may be taken away that later inputs need. */
const changesMuch = (text: string) => text.includes(TOKEN) && !/^(GET|HEAD) /.test(text);

export const requests: Target = {
  dictionary: [
    ...[
      "GET ",
      "POST ",
      "HEAD ",
      "OPTIONS ",
      " HTTP/1.1\r\n",
      " HTTP/1.0\r\n",
      "\r\n\r\n",
      "\r\n",
      "Host: 127.0.0.1\r\n",
      "Content-Length: 2\r\n",
    ],
    ...[
      "Transfer-Encoding: chunked\r\n",
      "Expect: 100-continue\r\n",
      "Connection: close\r\n",
      "Upgrade: h2c\r\n",
      "Content-Encoding: gzip\r\n",
      "Authorization: Bearer ",
    ],
    ...[
      "Authorization: AWS4-HMAC-SHA256 Credential=a/20260101/r/execute-api/aws4_request, SignedHeaders=host;constructor, Signature=00\r\n",
      "X-Api-Key: ",
    ],
    ...[
      "Content-Type: multipart/form-data; boundary=b\r\n",
      "Content-Type: text/plain; charset=punycode\r\n",
      "Content-Type: application/json\r\n",
      "Origin: null\r\n",
    ],
    ...[
      "Idempotency-Key: a\r\n",
      "X-Forwarded-Host: a\r\n",
      "X-Quern-Holder: {}\r\n",
      "X-Request-Id: \xff\r\n",
      "Accept: text/event-stream\r\n",
      "eyJhbGciOiJub25lIn0.e30.",
    ],
    ...[
      "/echo",
      "/jobs",
      "/-/",
      "/-/keys",
      "/-/apis",
      "/%2d/keys",
      "/..",
      "//",
      "?",
      "&",
      "%00",
      "%2e%2e",
      "jobID=",
      "dryRun=true",
      "cursor=",
      "limit=",
      "group_by=error",
    ],
    ...[
      "{}",
      "[]",
      '{"workers":1,"item_list":{"items":[1],"batch_size":1}}',
      "0\r\n\r\n",
      "5\r\n",
      TOKEN,
      `/jobs/${JOB}`,
      "\xe9",
      "\0",
    ],
  ],
  maxBytes: 16 * 1024,
  setUp,
  run(input) {
    const text = input.toString("latin1");
    if (changesMuch(text)) return undefined;
    return send(Buffer.from(text.replaceAll(TOKEN, token).replaceAll(JOB, job), "latin1"));
  },
};

const AUDIT = "/-/audit";
/** The lists with cursors: the first byte says which. */
const LISTS = (id: string) => ["/jobs", `/jobs/${id}/failures`, "/-/queues/letters/messages", AUDIT];

interface ListAnswer {
  code?: string;
  jobs?: unknown[];
  failures?: unknown[];
}

async function list(input: Buffer): Promise<Ran> {
  const paths = LISTS(job);
  const path = paths[(input[0] ?? 0) % paths.length]!;
  const query = encodeURIComponent(input.toString("utf8", 1)).replaceAll("%26", "&").replaceAll("%3D", "=");
  const response = await server.fetch(`${path}?${query}`, { headers: { authorization: `Bearer ${token}` } });
  const text = await response.text();
  mustHold(
    [200, 400, 404, 414, 431].includes(response.status),
    `${path}?${query} is answered with ${response.status}: ${text}`,
  );
  // A head that is too long is refused before there is a request, without a body.
  if (response.status === 431) return { features: ["431"] };
  // The audit is a JSON text a line, of which there may be none.
  const texts = path === AUDIT && response.status === 200 ? text.split("\n").filter(Boolean) : [text];
  const [body = {}] = texts.map((each) => JSON.parse(each) as ListAnswer);
  return {
    features: [`${path.slice(0, 6)} ${response.status} ${body.code} ${(body.jobs ?? body.failures)?.length}`],
  };
}

export const cursors: Target = {
  dictionary: [
    "cursor=",
    "limit=",
    "&",
    "=",
    "status=",
    "group_by=error",
    "jobID=",
    "status_running",
    JOB,
    "01j00000000000000000000000",
    "7zzzzzzzzzzzzzzzzzzzzzzzzz",
    "-1",
    "1e9",
    "%00",
  ],
  maxBytes: 4 * 1024,
  setUp,
  run: list,
};
