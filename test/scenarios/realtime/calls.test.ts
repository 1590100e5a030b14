/** Code that calls other APIs of its server (QUERN_API_URL), on a server with keys, TLS and a control listener. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callers } from "../../harness/callers.ts";
import { makeCertificate } from "../../harness/certificates.ts";
import { eventually } from "../../harness/eventually.ts";
import { freePort } from "../../harness/faulty-proxy.ts";
import { processes } from "../../harness/processes.ts";
import { TestServer } from "../../harness/server.ts";

const directory = new TestServer();
const [cert, key, later] = ["cert.pem", "key.pem", "later.json"].map((name) => join(directory.dir, name)) as [
  string,
  string,
  string,
];
const server = new TestServer({ NODE_EXTRA_CA_CERTS: cert });
const keys: Record<string, string> = {};
let mainPort = 0;

interface Answer {
  status: number;
  headers?: Record<string, string>;
  body: Record<string, unknown> & { code?: string; message?: string; job_id?: string; endpoint?: string };
}

/** As an external client, with TLS and a key. */
function ask(path: string, body?: unknown, scope = "predict", method?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = httpsRequest(
      `https://127.0.0.1:${mainPort}${path}`,
      {
        ...{ ca: readFileSync(cert), agent: false, method: method ?? (body === undefined ? "GET" : "POST") },
        headers: { "content-type": "application/json", "x-api-key": keys[scope] },
      },
      (answer) => {
        let text = "";
        answer.on("data", (piece) => (text += String(piece)));
        answer.on("end", () => resolve({ status: answer.statusCode!, body: JSON.parse(text || "null") }));
      },
    );
    sent.on("error", reject).end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** The response to a call from inside `api`. */
async function from(api: string, call: Record<string, unknown>): Promise<Answer> {
  const { status, body } = await ask(`/${api}`, call);
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`);
  return body as unknown as Answer;
}

async function urlOf(api: string): Promise<string> {
  return ((await from(api, { do: "env" })) as unknown as Record<string, string>).QUERN_API_URL!;
}

/** The path is sent without normalization. */
function send(
  url: string,
  path: string,
  { method = "POST", headers = {} }: { method?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { port } = new URL(url);
    const sent = httpRequest({ port, host: "127.0.0.1", method, path, agent: false }, (answer) => {
      let text = "";
      answer.on("data", (piece) => (text += String(piece)));
      answer.on("end", () => {
        const isJson = /json/.test(answer.headers["content-type"] ?? "");
        const body = isJson ? JSON.parse(text) : { message: text };
        resolve({ status: answer.statusCode!, headers: answer.headers as Record<string, string>, body });
      });
    });
    for (const [name, value] of Object.entries({ "content-type": "application/json", ...headers }))
      sent.setHeader(name, value);
    sent.on("error", reject).end(method === "POST" ? "{}" : undefined);
  });
}

beforeAll(async () => {
  makeCertificate(directory.dir);
  mainPort = await freePort();
  await server.start({}, [
    ...["--listen", `127.0.0.1:${mainPort}`, "--control-listen", `127.0.0.1:${await freePort()}`],
    ...["--tls-cert", cert, "--tls-key", key],
  ]);
  for (const scope of ["predict", "submit", "admin"]) {
    const { code, out, err } = server.cli(["keys", "create", "--scope", scope]);
    expect([code, err]).toEqual([0, expect.any(String)]);
    keys[scope] = out.trim();
  }
  server.deploy(callers(later));
}, 120_000);
afterAll(async () => {
  await server.stop();
  await directory.stop();
}, 60_000);

describe("user code", () => {
  it("calls another API by its name, in __init__ and in predict(), whatever its address, without a key", async () => {
    expect(await ask("/caller", { do: "first" })).toMatchObject({
      body: { status: 200, body: { inner: "in init" } },
    });
    for (const path of ["/inner", "/inner/", "/inner?x=1", "/split"])
      expect(await from("caller", { call: path, body: { a: 1 } })).toMatchObject({
        status: 200,
        body: { inner: { a: 1 } },
      });
    expect(await from("caller", { call: "/split", body: 1 })).toMatchObject({
      headers: { "x-quern-api": "inner" },
    });
    // The address that external clients use does not exist here.
    expect(await from("caller", { call: "/deep/in", body: 1 })).toMatchObject({ status: 404 });
    expect(await from("caller", { call: "/nobody", body: 1 })).toMatchObject({
      status: 404,
      body: { code: "api_not_found", message: "nobody is not deployed; `quern get` shows what is" },
    });
    // Another key that is sent along changes nothing.
    const headers = { authorization: "Bearer nobody", "x-api-key": "nobody" };
    expect(await from("caller", { call: "/inner", body: 1, headers })).toMatchObject({ status: 200 });
  });

  it("submits a job, reads it and stops it; addresses in answers are those of clients outside", async () => {
    const items = [{ call: "/inner", body: "from a batch", write: `${later}.batch` }];
    const job = { workers: 1, item_list: { items, batch_size: 1 } };
    const submitted = await from("caller", { call: "/jobs", body: job });
    const { job_id } = submitted.body;
    expect(submitted).toMatchObject({
      status: 200,
      headers: { location: `https://127.0.0.1:${mainPort}/jobs/${job_id}` },
    });
    await eventually("the job ends", async () => {
      const read = await from("caller", { call: `/jobs/${job_id}` });
      expect(read.status).toBe(200);
      expect(read.body.endpoint).toBe(`https://127.0.0.1:${mainPort}/jobs/${job_id}`);
      return (read.body.job_status as { status: string }).status === "status_succeeded";
    });
    // A batch calls in the same way, and so does on_job_complete.
    expect(JSON.parse(readFileSync(`${later}.batch`, "utf8"))).toMatchObject({
      body: { inner: "from a batch" },
    });
    expect(JSON.parse(readFileSync(later, "utf8"))).toMatchObject({
      status: 200,
      body: { inner: "at the end" },
    });
    const inner = await from("caller", {
      call: "/inner-jobs",
      body: { ...job, item_list: { items: [{}], batch_size: 1 } },
    });
    expect(inner.headers!.location).toBe(`https://127.0.0.1:${mainPort}/deep/jobs/${inner.body.job_id}`);
    const of = `/inner-jobs?jobID=${inner.body.job_id}`;
    expect((await from("caller", { call: of })).status).toBe(200);
    expect((await from("caller", { call: of, method: "DELETE" })).status).toBeOneOf([200, 409]);
  });

  it("has one address for all workers of a version, and another for each version", async () => {
    const urls = await Promise.all(["caller", "other"].map(urlOf));
    for (const url of urls) expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/quern_[\w-]{32}$/);
    expect(urls[0]).not.toBe(urls[1]);
  });
});

describe("the listener for user code", () => {
  it("is on loopback only", async () => {
    const port = Number(new URL(await urlOf("caller")).port);
    const own = Object.values(networkInterfaces()).flat();
    const outside = own.filter((address) => address!.family === "IPv4" && !address!.internal);
    for (const { address } of outside as { address: string }[]) {
      const opened = await new Promise((resolve) => {
        const socket = connect(port, address, () => resolve("opened")).on("error", () => resolve("refused"));
        socket.on("connect", () => socket.destroy());
      });
      expect([address, opened]).toEqual([address, "refused"]);
    }
    const hex = port.toString(16).toUpperCase().padStart(4, "0");
    const tables = ["tcp", "tcp6"].map((name) => `/proc/net/${name}`).filter(existsSync);
    const listening = tables.flatMap((file) =>
      readFileSync(file, "latin1")
        .split("\n")
        .map((line) => line.trim().split(/\s+/))
        .filter((fields) => fields[1]?.endsWith(`:${hex}`) && fields[3] === "0A"),
    );
    expect(listening.map((fields) => fields[1])).toEqual([`0100007F:${hex}`]);
  });

  it("refuses every request without a capability, and reveals nothing", async () => {
    const url = await urlOf("caller");
    const { pathname } = new URL(url);
    const other = pathname.endsWith("A") ? "Q" : "A";
    const wrong = [
      ...[
        "/",
        "/inner",
        "//inner",
        "/-/livez",
        "/-/readyz",
        `${pathname.slice(0, -1)}${other}/inner`,
        `${pathname}A/inner`,
      ],
      ...[
        `/${pathname}/inner`,
        `/x${pathname}/inner`,
        `/%71${pathname.slice(2)}/inner`,
        "/deep/in",
        "/quern_/inner",
      ],
      ...[`/${keys.predict}/inner`, `/${keys.admin}/inner`, `http://127.0.0.1${pathname}/inner`, "*"],
    ];
    const answers = await Promise.all(
      wrong.map((path) => send(url, path, { headers: { "x-api-key": keys.admin! } })),
    );
    for (const [i, { status, body }] of answers.entries())
      expect([wrong[i], status, body.code]).toEqual([wrong[i], 401, "unauthorized"]);
    expect(new Set(answers.map(({ body }) => body.message)).size).toBe(1);
    expect(answers[0]!.body.message).toContain("QUERN_API_URL");
  });

  it("does not reach the control plane, in any spelling of the path", async () => {
    const url = await urlOf("caller");
    const { pathname } = new URL(url);
    const attempts = [
      ...[
        "/-/apis",
        "/-/keys",
        "/-/livez",
        "/-/readyz",
        "/-/queues/x",
        "/-",
        "/%2d/apis",
        "/../-/apis",
        "//-/apis",
      ],
      ...[
        "/x/../-/apis",
        "/./-/apis",
        "/jobs/../-/apis",
        "/jobs/%2e%2e/-/apis",
        "/jobs//-/apis",
        "/inner/../-/apis",
      ],
      ...[
        "/\\-/apis",
        "/jobs/..;/-/apis",
        "/..%2f-/apis",
        "/jobs/..%2f..%2f-%2fapis",
        "/-;/apis",
        "/-%2fapis",
      ],
    ];
    for (const path of attempts)
      for (const method of ["GET", "POST"])
        for (const headers of [{}, { "x-api-key": keys.admin! }, { "x-quern-forwarded": "e30" }] as Record<
          string,
          string
        >[])
          expect([path, (await send(url, pathname + path, { method, headers })).status]).toEqual([
            path,
            expect.toBeOneOf([400, 404, 405]),
          ]);
  });

  it("refuses web pages, and answers nothing that they could read", async () => {
    const url = await urlOf("caller");
    const path = `${new URL(url).pathname}/other`;
    for (const origin of ["https://evil.example", "null", "http://localhost:3000", new URL(url).origin]) {
      for (const method of ["POST", "GET", "OPTIONS"]) {
        const { status, headers, body } = await send(url, path, { method, headers: { origin } });
        expect([origin, method, status, body.code]).toEqual([origin, method, 403, "origin_not_allowed"]);
        expect(headers!["access-control-allow-origin"]).toBe(undefined);
      }
    }
    for (const host of ["evil.example", `evil.example:${new URL(url).port}`, "127.0.0.1.evil.example"])
      expect((await send(url, path, { headers: { host } })).status).toBe(421);
    expect((await send(url, path)).status).toBe(200);
  });

  it("handles predictions and submissions like the main listener: methods, limits, broken bodies", async () => {
    const url = await urlOf("caller");
    const { pathname } = new URL(url);
    expect(await send(url, `${pathname}/other`, { method: "PUT" })).toMatchObject({ status: 405 });
    expect(await send(url, `${pathname}/other`, { method: "GET" })).toMatchObject({
      status: 200,
      body: { api: "other", endpoint: "/other" },
    });
    expect(await send(url, `${pathname}/other/below`)).toMatchObject({ status: 404 });
    expect(await send(url, `${pathname}/jobs`)).toMatchObject({ status: 400 });
    const headers = { "transfer-encoding": "gzip, chunked" };
    expect(await send(url, `${pathname}/other`, { headers })).toMatchObject({ status: 501 });
  });
});

describe("the capability", () => {
  it("appears in no argument, log, error, list or file", async () => {
    const url = await urlOf("other");
    const capability = new URL(url).pathname.slice(1);
    const raised = await ask("/other", { do: "raise" });
    expect([raised.status, raised.body.message]).toEqual([
      500,
      expect.stringContaining("no answer from http://"),
    ]);
    await ask("/other", { do: "print" });
    const items = [{ do: "raise" }, { do: "print" }];
    const job = await ask("/jobs", { workers: 1, item_list: { items, batch_size: 1 } }, "submit");
    const path = `/jobs/${job.body.job_id}`;
    await eventually("the job ends", async () => {
      const { body } = await ask(path, undefined, "submit");
      return (body.job_status as { end_time?: string }).end_time !== undefined;
    });
    const jobSecrets = (text: string) => text.match(/quern_[\w-]{32}/g);
    const seen = [
      ...[["get"], ["get", "-o", "json"], ["describe", "other"], ["logs", "other"], ["audit"]],
      ...[
        ["logs", "jobs", job.body.job_id!],
        ["job", "failures", "jobs", job.body.job_id!, "-o", "json"],
      ],
    ].map((args) => server.cli(args));
    const texts = [JSON.stringify(raised), server.stderr, ...seen.flatMap(({ out, err }) => [out, err])];
    expect(seen.map(({ out }) => out).join("")).toMatch(
      /calling http:\/\/127\.0\.0\.1:\d+\/quern_\*\*\*\/inner/,
    );
    for (const text of texts) expect([text, jobSecrets(text)]).toEqual([text, null]);
    for (const { command } of processes()) expect(command).not.toContain(capability);
    // The log file has the output of child processes unchanged; a copy of the server contains it nowhere else.
    const { stdout } = spawnSync("grep", ["-rlE", "quern_[A-Za-z0-9_-]{32}", server.dataDir], {
      encoding: "utf8",
    });
    expect(stdout.split("\n").filter((file) => file !== "" && !/\/logs\/(apis|jobs)\//.test(file))).toEqual(
      [],
    );
  });

  it("ends with the last worker of its version", async () => {
    const before = await urlOf("other");
    const opens = async (url: string) => (await send(url, `${new URL(url).pathname}/inner`)).status;
    expect(await opens(before)).toBe(200);
    expect(server.cli(["refresh", "other"]).code).toBe(0);
    await eventually("another worker answers", async () => (await urlOf("other")) !== before);
    await eventually("the former one is gone", async () => (await opens(before)) === 401);
    const now = await urlOf("other");
    expect(await opens(now)).toBe(200);
    expect(server.cli(["delete", "other", "-y"]).code).toBe(0);
    await eventually("the last one is gone", async () => (await opens(now)) === 401);
    expect(await opens(await urlOf("caller"))).toBe(200);
  });
});
