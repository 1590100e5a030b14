/** Text of outsiders in tokens, hosts and paths reaches no header and no other listener. */
import { writeFileSync } from "node:fs";
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { join } from "node:path";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runtimeDirectory } from "../../src/settings/runtime-directory.ts";
import { freePort } from "../harness/faulty-proxy.ts";
import { ECHO, project } from "../harness/projects.ts";
import { RawRequests } from "../harness/raw-requests.ts";
import { TestServer } from "../harness/server.ts";

const ISSUER = "https://issuer.example";
const item = { workers: 1, item_list: { items: [1], batch_size: 1 } };

const server = new TestServer();
let mainPort = 0;
let sign: (claims: JWTPayload) => Promise<string>;
let gateway = 0;

beforeAll(async () => {
  const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
  const jwks = join(server.dir, "jwks.json");
  const key = { ...(await exportJWK(publicKey)), kid: "one", alg: "ES256", use: "sig" };
  writeFileSync(jwks, JSON.stringify({ keys: [key] }));
  sign = (claims) =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: "ES256", kid: "one" })
      .setIssuer(ISSUER)
      .setAudience("quern")
      .setExpirationTime("10m")
      .sign(privateKey);
  mainPort = await freePort();
  await server.start({}, [
    ...["--listen", `127.0.0.1:${mainPort}`, "--control-listen", `0.0.0.0:${await freePort()}`],
    ...["--jwt-issuer", ISSUER, "--jwt-audience", "quern", "--jwt-jwks", jwks],
    ...["--public-url", "https://例え.example/mühle/"],
  ]);
  server.deploy({
    ...project(ECHO),
    "quern.yaml": `${project(ECHO)["quern.yaml"]}- name: inner\n  predictor: {path: predictor.py}\n  networking: {api_gateway: none, auth: none}\n- name: inner-jobs\n  kind: BatchAPI\n  predictor: {path: predictor.py}\n  networking: {api_gateway: none, auth: none}\n`,
  });
  gateway = server.child("gateway");
});
afterAll(() => server.stop());

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: { code?: string; message?: string; job_id?: string };
}

/** As an outsider sends it, without normalization. */
function send(
  to: { port: number } | { socketPath: string },
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body: unknown = undefined,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const type = body === undefined ? {} : { "content-type": "application/json" };
    const sent = httpRequest(
      { ...to, host: "127.0.0.1", method, path, headers: { ...type, ...headers }, agent: false },
      (answer) => {
        let text = "";
        answer.on("data", (piece) => (text += String(piece)));
        answer.on("end", () => {
          const isJson = /json/.test(answer.headers["content-type"] ?? "");
          resolve({
            status: answer.statusCode!,
            headers: answer.headers,
            body: isJson ? JSON.parse(text) : { message: text },
          });
        });
      },
    );
    sent.on("error", reject).end(body === undefined ? undefined : JSON.stringify(body));
  });
}
const main = (method: string, path: string, headers = {}, body?: unknown) =>
  send({ port: mainPort }, method, path, headers, body);
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

describe("a token", () => {
  it.each([
    ["in another script", "Жанна Д'Арк 🔥"],
    ["with control characters", "a\r\nx-quern-forwarded: e30\u0000\u007f"],
    ["with half a character", "\ud83d"],
    ["of 255 wide characters", "界".repeat(255)],
  ])("may have a subject %s, for predictions, jobs and the control plane", async (_, sub) => {
    const token = bearer(await sign({ sub, scope: "predict submit admin" }));
    expect((await main("POST", "/echo", token, {})).status).toBe(200);
    const submitted = await main("POST", "/jobs", token, item);
    expect(submitted.status).toBe(200);
    expect(submitted.headers.location).toBe(
      `https://xn--r8jz45g.example/m%C3%BChle/jobs/${submitted.body.job_id}`,
    );
    const { port } = new URL(server.baseUrl);
    expect((await send({ port: Number(port) }, "GET", "/-/apis", token)).status).toBe(200);
  });

  it.each([
    ["is too long", "x".repeat(256)],
    ["is a number", 7],
    ["is a map without a text", { toString: 1 }],
  ])("is refused if its subject %s", async (_, sub) => {
    const { status, body } = await main(
      "POST",
      "/jobs",
      bearer(await sign({ sub, scope: "submit" } as never)),
      item,
    );
    expect([status, body.code]).toEqual([401, "unauthorized"]);
    expect(body.message).toContain('"sub"');
  });

  it("may have as many scopes as fit into it", async () => {
    const token = bearer(
      await sign({ sub: "a", scope: ["submit", ...Array.from({ length: 900 }, () => "submit:x")] }),
    );
    expect(token.authorization.length).toBeGreaterThan(12_000);
    expect((await main("POST", "/jobs", token, item)).status).toBe(200);
  });

  it("grants nothing by an unknown scope", async () => {
    const token = bearer(await sign({ sub: "a", scope: [{ toString: 1 }, null, ["submit"]] }));
    expect((await main("POST", "/jobs", token, item)).status).toBe(403);
  });
});

describe("the main listener", () => {
  const attempts = [
    ...["/-/keys", "/-/apis", "/-/docs", "/-/openapi.json", "/-/metrics", "/-", "/-/", "/-keys"],
    ...["/%2d/keys", "/%2D/apis", "/x/../-/keys", "/./-/apis", "//-/apis", "/x/%2e%2e/-/apis", "/\\-/apis"],
    ...["http://127.0.0.1/-/apis", "http://localhost/%2d/apis", "/-;/apis", "/-%2fapis", "/-/apis?x=/../"],
    ...["/jobs/../-/apis", "/jobs/%2e%2e/-/apis", "/jobs/..;/-/apis", "/echo/../-/apis", "/jobs//-/apis"],
  ];
  it("reaches no address of the control plane, in any spelling", async () => {
    const token = bearer(await sign({ sub: "ada", scope: "admin" }));
    for (const path of attempts)
      for (const method of ["GET", "POST"])
        expect([path, (await main(method, path, token)).status]).toEqual([
          path,
          expect.toSatisfy((status: number) => status === 400 || status === 404),
        ]);
  });

  it.each([
    ["another host", "/-/jobs", { host: "evil.example" }, "421"],
    ["a target that is not canonical", "/x/../echo", {}, "400"],
    ["nothing", "/", {}, "404"],
    ["the control plane", "/-/apis", {}, "404"],
  ])("closes connections that wait for 100 Continue from %s", async (_what, path, headers, status) => {
    const raw = new RawRequests(`http://127.0.0.1:${mainPort}`);
    const request = raw.send(`POST ${path}`, { ...headers, "content-length": 50, expect: "100-continue" });
    expect(await request.firstStatus()).toBe(status);
    expect(request.text).toContain("\r\nconnection: close\r\n");
    raw.close();
  });

  it("reaches no inner API by another spelling, header or method", async () => {
    for (const path of ["/inner", "/inner-jobs"]) {
      const from = { "x-forwarded-for": "203.0.113.7" };
      expect((await main("POST", path, from, item)).status).toBe(401);
      expect((await main("POST", path.replace("i", "%69"), from, item)).status).toBe(400);
      for (const lie of [
        { "x-quern-internal": "true" },
        { "x-quern-forwarded": Buffer.from('{"isLocal":true,"listener":"control"}').toString("base64url") },
        { connection: "x-forwarded-for" },
      ])
        expect((await main("POST", path, { ...from, ...lie }, item)).status).toBe(401);
      const token = bearer(await sign({ sub: "ada", scope: "predict submit" }));
      expect((await main("POST", path, { ...from, ...token }, item)).status).toBe(404);
    }
  });

  it("accepts only known hosts, although the control listener, which is not on loopback, accepts any", async () => {
    const host = { host: "quern.example" };
    expect((await main("POST", "/echo", host, {})).status).toBe(421);
    expect((await main("GET", "/-/livez", host)).status).toBe(421);
    const { port } = new URL(server.baseUrl);
    expect((await send({ port: Number(port) }, "GET", "/-/apis", host)).status).toBe(401);
  });

  it("does not treat a page as local if its host name was made to resolve to this machine", async () => {
    // Past the check of hosts, as a proxy without X-Forwarded-For would send it.
    const host = { host: "xn--r8jz45g.example" };
    expect((await main("POST", "/inner", host, {})).status).toBe(401);
    expect((await main("POST", "/inner-jobs", host, item)).status).toBe(401);
    expect((await main("POST", "/inner", {}, {})).status).toBe(200);
  });
});

describe("the controller", () => {
  const direct = (forwarded: object | undefined, path: string, more: Record<string, string> = {}) => {
    const header: Record<string, string> =
      forwarded === undefined
        ? {}
        : { "x-quern-forwarded": Buffer.from(JSON.stringify(forwarded)).toString("base64url") };
    const socketPath = join(runtimeDirectory(server.dataDir), "controller.sock");
    return send({ socketPath }, "GET", path, { ...header, ...more });
  };

  it("refuses control requests from the main listener, whatever the gateway let through", async () => {
    const token = bearer(await sign({ sub: "ada", scope: "admin" }));
    const principal = { id: "jwt:ada", permissions: [{ scope: "admin", api: null }], rate: null };
    const base = { baseUrl: "http://x", isLocal: true, principal };
    for (const path of ["/-/apis", "/-/docs", "/%2d/apis", "/x/../-/apis", "/-/jobs/x"]) {
      expect([path, (await direct({ ...base, listener: "main" }, path, token)).status]).toEqual([path, 404]);
      expect([path, (await direct(undefined, path, token)).status]).toEqual([path, 404]);
    }
    expect((await direct({ ...base, listener: "control" }, "/-/apis")).status).toBe(200);
  });

  it("refuses inner APIs to clients on other machines", async () => {
    const base = { baseUrl: "http://x", listener: "main" };
    const principal = { id: "jwt:ada", permissions: [{ scope: "submit", api: null }], rate: null };
    expect((await direct({ ...base, isLocal: false, principal }, "/inner-jobs")).status).toBe(404);
    expect((await direct({ ...base, isLocal: false }, "/inner-jobs")).status).toBe(401);
    expect((await direct(undefined, "/inner-jobs")).status).toBe(401);
    expect((await direct({ ...base, isLocal: true }, "/inner-jobs")).status).toBe(200);
  });
});

describe("the command line", () => {
  it("names a key that no header can carry, without showing it", async () => {
    const other = new TestServer({ QUERN_API_KEY: "сек\nret", QUERN_HOST: server.baseUrl });
    const { code, err } = other.cli(["get"]);
    expect([code, err]).toEqual([2, expect.stringContaining("QUERN_API_KEY")]);
    expect(err).not.toMatch(/сек|ret\b/);
    await other.stop();
  });

  it.each(["example.com", "ftp://example.com", "https://a@example.com", "https://example.com/?x"])(
    "refuses --public-url %s",
    async (url) => {
      const other = new TestServer();
      const refused = other.cli(["up", "--listen", "127.0.0.1:0", "--public-url", url]);
      expect([refused.code, refused.err]).toEqual([2, expect.stringContaining("--public-url must be a URL")]);
      await other.stop();
    },
  );
});

it("none of these requests ended the gateway", () => {
  expect(server.child("gateway")).toBe(gateway);
  expect(server.stderr).not.toMatch(/process_ended|unhandled/i);
});
