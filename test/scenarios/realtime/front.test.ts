/** In front of the gateway: nginx, TLS, a page in a browser, a control listener, several gateways. */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { CONNECTIONS_QUEUED_MAX } from "../../../src/contracts/limits/processes.ts";
import { makeCertificate } from "../../harness/certificates.ts";
import { eventually } from "../../harness/eventually.ts";
import { freePort } from "../../harness/faulty-proxy.ts";
import { guideBlock } from "../../harness/guide-service.ts";
import { hasNginx, Nginx } from "../../harness/nginx.ts";
import { killAll, openFiles, processes } from "../../harness/processes.ts";
import { ECHO } from "../../harness/projects.ts";
import { readStream } from "../../harness/read-stream.ts";
import { root, TestServer } from "../../harness/server.ts";
import { SteadyLoad } from "../../harness/steady-load.ts";

const STREAM = `
import time
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        for n in range(4):
            yield n
            time.sleep(0.2)
`;
/** Counts in a file what it yields. */
const ENDLESS = `
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        try:
            with open(payload[0], "a", buffering=1) as begun:
                while True:
                    yield "x" * 10_000
                    begun.write("y")
                    begun.flush()
        finally:
            open(payload[1], "w").close()
`;
const fileSize = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
const APIS =
  "- name: echo\n  predictor: {path: p.py}\n- name: stream\n  predictor: {path: s.py}\n- name: inner\n  predictor: {path: p.py}\n  networking: {api_gateway: none}\n- name: jobs\n  kind: BatchAPI\n  predictor: {path: p.py}\n";
const PROJECT = { "quern.yaml": APIS, "p.py": ECHO, "s.py": STREAM };

const has = (command: string) => spawnSync("which", [command]).status === 0;

describe.skipIf(!hasNginx)("a server behind the nginx of the guide", () => {
  const server = new TestServer();
  const nginx = new Nginx(join(server.dir, "nginx"));
  afterAll(async () => {
    await nginx.stop();
    await server.stop();
  });

  it("shows nobody outside an API that is only for this machine, whatever Host says", async () => {
    await server.start();
    server.deploy(PROJECT);
    const port = await freePort();
    const own = new URL(server.baseUrl).host;
    const conf = guideBlock("nginx", "quern.conf");
    const here = conf.replace("listen 80;", `listen 127.0.0.1:${port};`).replace("127.0.0.1:8420", own);
    await nginx.start(here, `http://127.0.0.1:${port}/-/livez`);
    for (const host of ["localhost", "127.0.0.1", own]) {
      expect(await statusOf(port, "/echo", host)).toBe(200);
      expect(await statusOf(port, "/inner", host)).toBe(404);
    }
    expect((await server.post("/inner", 1)).status).toBe(200);
  });
});

/** fetch() sets Host itself. */
function statusOf(port: number, path: string, host: string): Promise<number | undefined> {
  const headers = { host, "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ port, path, method: "POST", headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.once("error", reject).end("1");
  });
}

describe.skipIf(!hasNginx)("a server behind nginx with a stage and a {proxy} path", () => {
  const server = new TestServer();
  const nginx = new Nginx(join(server.dir, "nginx"));
  let port = 0;
  beforeAll(async () => {
    await server.start({}, ["--trusted-proxies", "127.0.0.1"]);
    server.deploy(PROJECT);
    port = await freePort();
    await nginx.start(
      `server {
  listen 127.0.0.1:${port};
  location /prod/ {
    proxy_pass ${server.baseUrl}/;
    proxy_http_version 1.1;
    proxy_set_header X-Forwarded-For $remote_addr;
    proxy_set_header X-Forwarded-Proto https;
    proxy_set_header X-Forwarded-Host models.example.com;
    proxy_set_header X-Forwarded-Prefix /prod;
  }
}`,
      `http://127.0.0.1:${port}/prod/-/livez`,
    );
  });
  afterAll(async () => {
    await nginx.stop();
    await server.stop();
  });
  const through = (path: string, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${port}/prod${path}`, init);

  it("has the right addresses in its answers", async () => {
    const response = await through("/jobs", {
      method: "POST",
      body: JSON.stringify({ workers: 1, item_list: { items: [1], batch_size: 1 } }),
      headers: { "content-type": "application/json" },
    });
    const job = (await response.json()) as { job_id: string; queue_url: string };
    expect(response.headers.get("location")).toBe(`https://models.example.com/prod/jobs/${job.job_id}`);
    expect(job.queue_url).toBe(`https://models.example.com/prod/-/queues/${job.job_id}`);
    const status = (await (await through(`/jobs/${job.job_id}`)).json()) as { endpoint: string };
    expect(status.endpoint).toBe(`https://models.example.com/prod/jobs/${job.job_id}`);
  });

  it("treats only pages of its public address as its own", async () => {
    const job = JSON.stringify({ workers: 1, item_list: { items: [1], batch_size: 1 } });
    const from = (path: string, body: string, origin: string) =>
      through(path, { method: "POST", body, headers: { "content-type": "application/json", origin } });
    for (const [path, body] of [
      ["/jobs", job],
      ["/echo", "{}"],
    ] as const) {
      expect((await from(path, body, "https://models.example.com")).status).toBe(200);
      expect((await from(path, body, "https://evil.example")).status).toBe(403);
    }
  });

  it("forwards bodies unchanged, and streams without delay", async () => {
    const bytes = new Uint8Array([0, 255, 10, 13, 0]);
    const response = await through("/echo", {
      method: "POST",
      body: bytes,
      headers: { "content-type": "application/x-thing" },
    });
    expect([response.status, response.headers.get("content-type")]).toEqual([
      200,
      "application/octet-stream",
    ]);
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(bytes);
    const { piecesMs, isWhole } = await readStream(
      `http://127.0.0.1:${port}/prod/stream`,
      {},
      { accept: "text/event-stream" },
    );
    expect(isWhole).toBe(true);
    expect(piecesMs.at(-1)! - piecesMs[0]!).toBeGreaterThan(400);
  });

  it("does not count as local for APIs that are for this machine only", async () => {
    expect(
      (
        await through("/inner", {
          method: "POST",
          body: "{}",
          headers: { "content-type": "application/json" },
        })
      ).status,
    ).toBe(404);
  });
});

describe.skipIf(!has("chromium"))("a page of another origin, in a browser", () => {
  const server = new TestServer();
  afterAll(() => server.stop());
  /** The final text of a page. `evil.example` is a name of this machine, as after DNS rebinding. */
  const domOf = (url: string) =>
    new Promise<string>((resolve) => {
      const browser = spawn(
        "chromium",
        [
          ...["--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=10000", "--dump-dom"],
          ...[
            "--host-resolver-rules=MAP evil.example 127.0.0.1",
            `--user-data-dir=${join(server.dir, "browser")}`,
          ],
          url,
        ],
        { stdio: ["ignore", "pipe", "ignore"] },
      );
      let out = "";
      browser.stdout.on("data", (text) => (out += String(text)));
      browser.on("exit", () => resolve(out));
    });

  it("makes the contract's predictions with fetch, as do the CLI, curl and Python's requests", async () => {
    await server.start();
    expect(server.cli(["deploy", join(root, "examples", "iris"), "--wait"]).code).toBe(0);
    const flower = { sepal_length: 5.2, sepal_width: 3.6, petal_length: 1.4, petal_width: 0.3 };
    const url = `${server.baseUrl}/iris`;
    const page = createServer((_, response) => {
      response.setHeader("content-type", "text/html");
      response.end(`<body><script>
        const ask = (payload) => fetch("${url}", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(payload)})
          .then(async (r) => r.headers.get("x-request-id") === null ? "no request id" : r.json());
        Promise.all([ask(${JSON.stringify(flower)}), ask([${JSON.stringify(flower)}, ${JSON.stringify(flower)}])])
          .then((all) => document.body.innerText = "answers " + JSON.stringify(all), (e) => document.body.innerText = "error " + e);
      </script></body>`);
    });
    const port = await freePort();
    await new Promise<void>((resolve) => page.listen(port, "127.0.0.1", resolve));
    const dom = await domOf(`http://127.0.0.1:${port}/`);
    page.close();
    expect(dom).toContain('answers ["setosa",["setosa","setosa"]]');

    for (const [payload, answer] of [
      [flower, '"setosa"'],
      [[flower, flower], '["setosa","setosa"]'],
    ] as const) {
      const body = JSON.stringify(payload);
      expect(server.cli(["predict", "iris", "-"], { input: body }).out.trim()).toBe(answer);
      expect(
        execFileSync("curl", ["-s", url, "-X", "POST", "-H", "Content-Type: application/json", "-d", body], {
          encoding: "utf8",
        }),
      ).toBe(answer);
      const script = `import requests,sys,json; print(json.dumps(requests.post(sys.argv[1], json=json.loads(sys.argv[2])).json(), separators=(",",":")))`;
      const python = spawnSync("python3", ["-c", script, url, body], { encoding: "utf8" });
      expect(python.stderr.includes("No module named") || python.stdout.trim() === answer).toBe(true);
    }
  }, 60_000);

  it("cannot make or read predictions if it comes from another machine", async () => {
    const log = join(server.dir, "predictions");
    server.deploy({
      "quern.yaml": `- name: noted\n  predictor: {path: p.py, config: {log: ${log}}}\n`,
      "p.py": `
class PythonPredictor:
    def __init__(self, config): self.log = config["log"]
    def predict(self, payload):
        with open(self.log, "a") as log: log.write("predicted\\n")
        return "secret"
`,
    });
    const url = `${server.baseUrl}/noted`;
    const page = createServer((_, response) => {
      response.setHeader("content-type", "text/html");
      response.end(`<body><iframe name="f"></iframe><form method="post" action="${url}" target="f" enctype="text/plain"><input name='{"a":"' value='"}'></form><script>
        const options = {method: "POST", body: "{}"};
        const said = [];
        const note = (name, promise) => promise.then((r) => r.text()).then((t) => said.push(name + " " + t), () => said.push(name + " refused"));
        document.forms[0].submit();
        navigator.sendBeacon("${url}", "{}");
        Promise.all([
          note("json", fetch("${url}", {...options, headers: {"Content-Type": "application/json"}})),
          note("simple", fetch("${url}", options)),
          note("opaque", fetch("${url}", {...options, mode: "no-cors"})),
          note("get", fetch("${url}")),
        ]).then(() => document.body.append("tried: " + said.sort().join(", ") + "."));
      </script></body>`);
    });
    const port = await freePort();
    await new Promise<void>((resolve) => page.listen(port, "127.0.0.1", resolve));
    const dom = await domOf(`http://evil.example:${port}/`);
    page.close();
    // Not even an opaque answer, which has no text for a page: that there is one may tell something.
    expect(dom).toContain("tried: get refused, json refused, opaque refused, simple refused.");
    expect(dom).not.toContain("secret");
    // The page's own name for the server: the response is 421, Unknown Host header.
    const rebound = await domOf(`http://evil.example:${new URL(server.baseUrl).port}/noted`);
    expect(rebound).toContain("misdirected_request");
    expect(existsSync(log)).toBe(false);
    expect((await server.post("/noted", {})).status).toBe(200);
    expect(readFileSync(log, "utf8")).toBe("predicted\n");
  }, 60_000);
});

describe("TLS", () => {
  const server = new TestServer();
  afterAll(() => server.stop());
  const [cert, key] = ["cert.pem", "key.pem"].map((name) => join(server.dir, name)) as [string, string];
  const subject = () =>
    new Promise<[number, string]>((resolve, reject) => {
      const sent = httpsRequest(
        `${server.baseUrl}/echo`,
        {
          method: "POST",
          ca: readFileSync(cert),
          agent: false,
          headers: { "content-type": "application/json" },
        },
        (answer) => {
          const { CN } = (answer.socket as TLSSocket).getPeerCertificate().subject;
          answer.resume().on("end", () => resolve([answer.statusCode!, String(CN)]));
        },
      );
      sent.on("error", reject).end("{}");
    });

  it("serves with a certificate, and with a renewed one without a restart", async () => {
    makeCertificate(server.dir, "first");
    await server.start({}, ["--gateways", "2", "--tls-cert", cert, "--tls-key", key]);
    expect(server.baseUrl).toMatch(/^https:/);
    const trusting = new TestServer({ NODE_EXTRA_CA_CERTS: cert, QUERN_DATA_DIR: server.dataDir });
    const project = join(server.dir, "tls-project");
    execFileSync("mkdir", [project]);
    const apis = "- name: echo\n  predictor: {path: p.py}\n- name: endless\n  predictor: {path: e.py}\n";
    writeFileSync(join(project, "quern.yaml"), apis);
    writeFileSync(join(project, "p.py"), ECHO);
    writeFileSync(join(project, "e.py"), ENDLESS);
    expect(trusting.cli(["deploy", project, "--wait"])).toMatchObject({ code: 0 });
    expect(await subject()).toEqual([200, "first"]);
    writeFileSync(cert, "half of a");
    await eventually("the broken one is told", () =>
      server.stderr.includes("the new certificate cannot be used"),
    );
    rmSync(key);
    makeCertificate(server.dir, "second");
    await eventually("the new one is shown", async () => (await subject().catch(() => []))[1] === "second");
    await trusting.stop();
  });

  it("ends the stream of a client that reads nothing and leaves", async () => {
    const [begun, ended] = ["begun", "ended"].map((name) => join(server.dir, name)) as [string, string];
    const client = connectTls({ port: Number(new URL(server.baseUrl).port), rejectUnauthorized: false });
    const body = JSON.stringify([begun, ended]);
    const head = `Host: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
    client.write(`POST /endless HTTP/1.1\r\n${head}\r\n\r\n${body}`);
    await eventually("all that is between them is full", () => fileSize(begun) > 100);
    const full = () => fileSize(begun);
    for (let before = -1; before !== full(); await pause(300)) before = full();
    client.destroy();
    await eventually("the stream ends", () => existsSync(ended), 15_000);
  });

  it("reports errors in its files", () => {
    const other = new TestServer();
    const refused = other.cli(["up", "--listen", "127.0.0.1:0", "--tls-cert", cert]);
    expect([refused.code, refused.err]).toEqual([2, expect.stringContaining("--tls-key must be a file")]);
    return other.stop();
  });
});

describe("a control listener", () => {
  const server = new TestServer();
  afterEach(() => server.stop());

  it("removes the control plane and inner APIs from the main one", async () => {
    const mainPort = await freePort();
    await server.start({}, [
      "--listen",
      `127.0.0.1:${mainPort}`,
      "--control-listen",
      `127.0.0.1:${await freePort()}`,
    ]);
    // The command line finds the control plane.
    const inner =
      "- name: inner-jobs\n  kind: BatchAPI\n  predictor: {path: p.py}\n  networking: {api_gateway: none}\n";
    server.deploy({ ...PROJECT, "quern.yaml": APIS + inner });
    const main = `http://127.0.0.1:${mainPort}`;
    expect(server.baseUrl).not.toBe(main);
    const post = (base: string, path: string, headers = {}) =>
      fetch(base + path, {
        method: "POST",
        body: "{}",
        headers: { "content-type": "application/json", ...headers },
      });
    expect((await post(main, "/echo")).status).toBe(200);
    expect((await fetch(`${main}/-/livez`)).status).toBe(200);
    for (const path of ["/-/apis", "/-/docs", "/-/healthz", `/-/proof?nonce=${"0".repeat(64)}`])
      expect((await fetch(main + path)).status).toBe(404);
    const elsewhere = { "x-forwarded-for": "203.0.113.7" };
    expect((await post(main, "/inner", elsewhere)).status).toBe(404);
    expect((await post(server.baseUrl, "/inner", elsewhere)).status).toBe(200);
    // Unchanged, because fetch would resolve them.
    const asIs = (path: string) =>
      new Promise<[string, number]>((resolve, reject) => {
        const headers = { ...elsewhere, host: "localhost", authorization: `Bearer ${token}` };
        httpRequest({ host: "127.0.0.1", port: mainPort, path, headers }, (answer) => {
          answer.resume().on("end", () => resolve([path, answer.statusCode!]));
        })
          .on("error", reject)
          .end();
      });
    const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    for (const path of [
      "/x/../-/keys",
      "/%2D/apis",
      "/x/%2e%2e/-/keys",
      "http://localhost/-/keys",
      "http://localhost/inner-jobs",
      "/%69nner-jobs",
      "//localhost/-/keys",
      "/x\\..\\-\\keys",
    ])
      expect(await asIs(path)).toEqual([path, 400]);
    for (const path of ["/-/keys", "/inner-jobs", "/inner-jobs/"])
      expect(await asIs(path)).toEqual([path, 404]);
    expect(await asIs("/jobs?x=/../%2D")).toEqual(["/jobs?x=/../%2D", 200]);
  });
});

describe("two gateways", () => {
  const server = new TestServer();
  afterAll(() => server.stop());
  const gateways = () =>
    processes().filter(({ ppid, command }) => ppid === server.parent!.pid && command.includes("__gateway"));

  it("share the load, and either may die", async () => {
    await server.start({}, ["--gateways", "2"]);
    server.deploy(PROJECT);
    expect(gateways().length).toBe(2);
    const load = new SteadyLoad(`${server.baseUrl}/echo`, 8);
    await eventually("answers come", () => load.answers.length > 200);
    process.kill(gateways()[0]!.pid, "SIGTERM");
    await eventually("more come", () => load.answers.length > 2_000);
    await eventually("there are two again", () => gateways().length === 2);
    const answers = await load.stop();
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    // A revoked key is refused by both. The other key keeps the API closed to others.
    server.cli(["keys", "create", "--scope", "admin"]);
    const created = server.cli(["keys", "create", "--scope", "predict"]).out.trim();
    const { keys } = JSON.parse(server.cli(["keys", "list", "-o", "json"]).out) as {
      keys: { id: string; scope: string }[];
    };
    const ask = () =>
      new Promise<number>((resolve) =>
        httpRequest(
          `${server.baseUrl}/echo`,
          {
            method: "POST",
            agent: false,
            headers: { "content-type": "application/json", "x-api-key": created },
          },
          (answer) => resolve(answer.resume().statusCode!),
        ).end("{}"),
      );
    for (let i = 0; i < 10; i++) expect(await ask()).toBe(200);
    expect(server.cli(["keys", "revoke", keys.find(({ scope }) => scope === "predict")!.id]).code).toBe(0);
    for (let i = 0; i < 10; i++) expect(await ask()).not.toBe(200);
  });

  it("answer a client that has ended its side, and close connections without a complete head", async () => {
    const sockets = Array.from({ length: 40 }, () =>
      connect(Number(new URL(server.baseUrl).port), "127.0.0.1"),
    );
    const started = performance.now();
    const slow = sockets[0]!;
    let said = "";
    slow.on("data", (piece) => (said += String(piece))).on("error", () => {});
    slow.write("POST /echo HTTP/1.1\r\nHost: localhost\r\nX-Slow: ");
    const answers = await Promise.all(
      sockets.slice(1).map(
        (socket) =>
          new Promise<string>((resolve) => {
            let text = "";
            socket.on("data", (piece) => (text += String(piece))).on("close", () => resolve(text));
            // It sends its whole request, and ends its side.
            socket.end("GET /-/livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
          }),
      ),
    );
    for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    await eventually("the slow one is cut off", () => slow.destroyed || slow.readableEnded, 40_000);
    expect(said).toMatch(/^HTTP\/1\.1 408 /);
    expect(performance.now() - started).toBeGreaterThan(15_000);
  }, 60_000);

  it("share connections evenly", async () => {
    const port = Number(new URL(server.baseUrl).port);
    const count = () => gateways().map(({ pid }) => socketsOf(pid));
    const before = count();
    const sockets = Array.from({ length: 40 }, () => connect(port, "127.0.0.1"));
    // Connections of the tests before may end meanwhile.
    const isHalf = (more: number) => more >= 15 && more <= 22;
    await eventually("both have twenty more", () => count().every((now, at) => isHalf(now - before[at]!)));
    for (const socket of sockets) socket.destroy();
    await eventually("they are gone", () => count().every((now, at) => now <= before[at]! + 2));
  });
});

const socketsOf = (pid: number) => openFiles(pid).filter((path) => path.startsWith("socket:")).length;

describe("a stalled and killed gateway of two", () => {
  const server = new TestServer();
  afterAll(() => server.stop());

  it("has its pending requests answered by the other one", async () => {
    await server.start({}, ["--gateways", "2"]);
    server.deploy(PROJECT);
    const victim = server.child("gateway");
    process.kill(victim, "SIGSTOP");
    const requests = Array.from({ length: 20 }, () =>
      server.post("/echo", { id: 1 }, { connection: "close" }).then(
        ({ status }) => status,
        () => 0,
      ),
    );
    await eventually("its neighbour has answered its half", async () => {
      const answered = await Promise.all(
        requests.map((one) => Promise.race([one, new Promise((resolve) => setImmediate(resolve))])),
      );
      return answered.filter((status) => status === 200).length >= 8;
    });
    process.kill(victim, "SIGKILL");
    const statuses = await Promise.all(requests);
    // The connection that it was being given too.
    expect(statuses).toEqual(statuses.map(() => 200));
  });

  it("has a neighbour that is stalled too: connections wait, few of them in the parent, and are all served", async () => {
    const gateways = () =>
      processes().filter(({ ppid, command }) => ppid === server.parent!.pid && command.includes("__gateway"));
    // The parent says it again when the one that was killed has a successor that takes connections.
    await eventually("both are ready", () => server.stderr.split("quern is ready").length > 2);
    const before = socketsOf(server.parent!.pid!);
    for (const { pid } of gateways()) process.kill(pid, "SIGSTOP");
    const port = Number(new URL(server.baseUrl).port);
    const clients = Array.from({ length: 3 * CONNECTIONS_QUEUED_MAX }, () => connect(port, "127.0.0.1"));
    const answers = clients.map(async (client) => {
      client.end("GET /-/livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
      let text = "";
      for await (const piece of client) text += String(piece);
      return text.slice(0, 12);
    });
    await eventually("all are connected", () => clients.every(({ connecting }) => !connecting));
    const most = 2 * CONNECTIONS_QUEUED_MAX;
    // One of a test before may have been closed meanwhile.
    await eventually("the parent has some", () => socketsOf(server.parent!.pid!) - before >= most - 5);
    expect(socketsOf(server.parent!.pid!) - before).toBeLessThanOrEqual(most);
    killAll(gateways().map(({ pid }) => pid));
    expect(new Set(await Promise.all(answers))).toEqual(new Set(["HTTP/1.1 200"]));
    await eventually("the parent has none", () => socketsOf(server.parent!.pid!) <= before);
  });
});
