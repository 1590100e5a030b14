/** Access and rate limits: keys that expire, limits, tokens of an issuer, and the audit. */
import { spawnSync } from "node:child_process";
import { createHash, createHmac, type Hash, type Hmac } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { SignatureV4 } from "@smithy/signature-v4";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { signedHeaders, type ToSign } from "../../harness/aws-signature.ts";
import { eventually } from "../../harness/eventually.ts";
import { ECHO, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

/** The hash function in the form that the signer needs. */
class Sha256 {
  private readonly hash: Hash | Hmac;
  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.hash = secret === undefined ? createHash("sha256") : createHmac("sha256", secret as string);
  }
  update(data: Uint8Array | string): void {
    this.hash.update(data);
  }
  async digest(): Promise<Uint8Array> {
    return this.hash.digest();
  }
  reset(): void {}
}

const item = { workers: 1, item_list: { items: [1], batch_size: 1 } };
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

describe("keys", () => {
  const server = new TestServer();
  beforeAll(async () => {
    await server.start();
    server.deploy(project(ECHO));
  });
  afterAll(() => server.stop());
  const create = (...args: string[]) =>
    JSON.parse(server.cli(["keys", "create", "-o", "json", ...args]).out) as { id: string; key: string };
  const status = async (key: string | undefined) =>
    (await server.post("/echo", {}, key === undefined ? {} : bearer(key))).status;

  it("have a rate limit, and responses report the rest of it", async () => {
    const { key } = create("--scope", "predict", "--rate", "3/m");
    const answers = [];
    for (let i = 0; i < 4; i++) answers.push(await server.post("/echo", {}, bearer(key)));
    expect(answers.map((answer) => answer.status)).toEqual([200, 200, 200, 429]);
    expect(answers.map(({ headers }) => headers.get("ratelimit-remaining"))).toEqual(["2", "1", "0", "0"]);
    const { headers } = answers[3]!;
    expect(headers.get("ratelimit-limit")).toBe("3");
    expect(Number(headers.get("ratelimit-reset"))).toBeGreaterThan(50);
    expect(headers.get("retry-after")).toBe(headers.get("ratelimit-reset"));
    expect(await answers[3]!.json()).toMatchObject({ code: "rate_limited" });
    expect(server.cli(["keys", "list"]).out).toMatch(/predict +all +3\/m/);
  });

  it("has requests counted that it may not make, too", async () => {
    const page = { origin: "https://page.example" };
    for (const [path, more] of [
      ["/echo", {}],
      ["/-/keys", {}],
      ["/-/keys", page],
    ] as const) {
      const { key } = create("--scope", "predict", "--api", "other", "--rate", "2/m");
      const answers = [];
      for (let i = 0; i < 3; i++) answers.push(await server.post(path, {}, { ...bearer(key), ...more }));
      const counts = answers.map(({ status, headers }) => [status, headers.get("ratelimit-remaining")]);
      expect([path, more, ...counts]).toEqual([path, more, [403, "1"], [403, "0"], [429, "0"]]);
    }
  });

  it("are limited for submissions too, until the window ends", async () => {
    const { key } = create("--scope", "submit", "--rate", "1/s");
    const submit = async () => (await server.post("/jobs", item, bearer(key))).status;
    // A window may end between two.
    const both = async () => (await Promise.all([submit(), submit()])).sort();
    await eventually("the second of a window is refused", async () => (await both()).join() === "200,429");
    await eventually("the window is over", async () => (await submit()) === 200);
  });

  it("are named in the audit of the jobs that they submit and stop, with their scope and address", async () => {
    const { key, id } = create("--scope", "submit", "--api", "jobs", "--name", "nightly");
    const job = (await (await server.post("/jobs", item, bearer(key))).json()) as { job_id: string };
    expect((await server.post("/jobs?dryRun=true", item, bearer(key))).status).toBe(200);
    const stop = { method: "DELETE", headers: bearer(key) };
    // Only a submission can be a dry run: this one stops.
    expect((await server.fetch(`/jobs/${job.job_id}?dryRun=true`, stop)).status).toBe(200);
    const { out } = server.cli(["audit", "--key", id, "-o", "json"]);
    const lines = out.trim().split("\n");
    const by = {
      by: id,
      by_name: "nightly",
      scope: "submit:jobs",
      client: "127.0.0.1",
      what: job.job_id,
      status: 200,
    };
    expect(lines.map((line) => JSON.parse(line) as Record<string, unknown>)).toMatchObject([
      { ...by, method: "POST", path: "/jobs" },
      { ...by, method: "DELETE", path: `/jobs/${job.job_id}` },
    ]);
    expect(server.cli(["audit", "--key", id]).out).toContain(
      `${id} "nightly" 127.0.0.1 POST /jobs 200 ${job.job_id}`,
    );
  });

  it("are rotated: the new one has the same permissions, the old one ends after the grace period", async () => {
    const former = create("--scope", "predict", "--api", "echo");
    const { code, out } = server.cli(["keys", "rotate", former.id, "--grace", "2s"]);
    expect(code).toBe(0);
    const next = out.trim();
    expect([await status(former.key), await status(next)]).toEqual([200, 200]);
    await eventually("the former one has ended", async () => (await status(former.key)) === 401);
    expect(await status(next)).toBe(200);
  });

  it("with an expiry time are rotated only if the new one's is given, or never", () => {
    const former = create("--scope", "predict", "--expires-in", "1h");
    expect(server.cli(["keys", "rotate", former.id])).toMatchObject({
      code: 5,
      err: expect.stringMatching(
        /key \S+ ends at 20\S+; say how long the new key is valid with `--expires-in`, or/,
      ),
    });
    const hours = (text: string) => (Date.parse(text) - Date.now()) / 3_600_000;
    const rotate = (expiresIn: string) =>
      JSON.parse(server.cli(["keys", "rotate", former.id, "--expires-in", expiresIn, "-o", "json"]).out) as {
        expires_time: string | null;
      };
    expect(hours(rotate("2h").expires_time!)).toBeCloseTo(2, 1);
    expect(rotate("never").expires_time).toBeNull();
  });

  it("end at their expiry time", async () => {
    const { key } = create("--scope", "predict", "--expires-in", "1500ms");
    expect(await status(key)).toBe(200);
    await eventually("it has ended", async () => (await status(key)) === 401);
  });

  it("keep APIs closed even after the last one was revoked", async () => {
    const { keys } = JSON.parse(server.cli(["keys", "list", "-o", "json"]).out) as { keys: { id: string }[] };
    for (const { id } of keys) expect(server.cli(["keys", "revoke", id]).code).toBe(0);
    expect(server.cli(["keys", "list"]).out).toContain("no keys");
    expect(await status(undefined)).toBe(401);
    expect(server.cli(["keys", "revoke", keys[0]!.id]).code).toBe(4);
  });

  it("leave an audit line for each change and each refusal", async () => {
    await server.fetch("/-/apis/echo", { method: "DELETE", headers: bearer("nobody") });
    const linesOf = (name: string) =>
      readFileSync(join(server.dataDir, "logs", name), "utf8")
        .trim()
        .split("\n");
    const lines = linesOf("audit.log");
    const audit = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    const refused = JSON.parse(linesOf("audit-refused.log").at(-1)!) as Record<string, unknown>;
    expect(audit[0]).toMatchObject({ method: "POST", path: "/-/deploy", by: "admin-token", status: 200 });
    // Data that the path lacks: which APIs, which key.
    expect(audit[0]!.what).toMatch(/^echo [0-9a-f]{24}/);
    expect(audit.find(({ path }) => path === "/-/keys")!.what).toMatch(/^k-[0-9a-f]{10} \(/);
    expect(
      audit.filter(({ method, path }) => method === "DELETE" && String(path).startsWith("/-/keys/")).length,
    ).toBeGreaterThan(3);
    expect(refused).toMatchObject({ method: "DELETE", path: "/-/apis/echo", by: null, status: 401 });
    expect(lines.join()).not.toContain("quern_");
  });
});

describe("tokens of an issuer", () => {
  const server = new TestServer();
  let issuer: Server;
  let issuerUrl = "";
  let sign: (
    claims: JWTPayload,
    options?: { issuer?: string; audience?: string; expires?: string; key?: "other" },
  ) => Promise<string>;

  beforeAll(async () => {
    const ours = await generateKeyPair("ES256", { extractable: true });
    const other = await generateKeyPair("ES256", { extractable: true });
    const jwk = { ...(await exportJWK(ours.publicKey)), kid: "one", alg: "ES256", use: "sig" };
    issuer = createServer((request, response) => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(request.url === "/.well-known/jwks.json" ? { keys: [jwk] } : {}));
    });
    await new Promise<void>((resolve) => issuer.listen(0, "127.0.0.1", resolve));
    issuerUrl = `http://127.0.0.1:${(issuer.address() as { port: number }).port}`;
    sign = (claims, options = {}) =>
      new SignJWT(claims)
        .setProtectedHeader({ alg: "ES256", kid: "one" })
        .setIssuer(options.issuer ?? issuerUrl)
        .setAudience(options.audience ?? "quern")
        .setSubject("ada")
        .setIssuedAt()
        .setExpirationTime(options.expires ?? "10m")
        .sign(options.key === "other" ? other.privateKey : ours.privateKey);
    await server.start({}, ["--jwt-issuer", issuerUrl, "--jwt-audience", "quern"]);
    server.deploy({
      ...project(ECHO),
      "quern.yaml": `${project(ECHO)["quern.yaml"]}- name: other\n  predictor: {path: predictor.py}\n`,
    });
  });
  afterAll(async () => {
    issuer.close();
    await server.stop();
  });
  const call = async (path: string, token: string, body: unknown = {}) => {
    const response = await server.post(path, body, bearer(token));
    return [response.status, (await response.json()) as { code?: string; message?: string }] as const;
  };

  it("grant the scopes of their claim, and nothing without it", async () => {
    expect((await server.post("/echo", {})).status).toBe(401);
    const all = await sign({ scope: "openid predict submit:jobs" });
    for (let again = 0; again < 2; again++) {
      expect((await call("/echo", all))[0]).toBe(200);
      expect((await call("/other", all))[0]).toBe(200);
      expect((await call("/jobs", all, item))[0]).toBe(200);
    }
    const one = await sign({ scope: ["predict:echo"] });
    expect((await call("/echo", one))[0]).toBe(200);
    expect((await call("/other", one))[0]).toBe(403);
    expect((await call("/jobs", one, item))[0]).toBe(403);
    const admin = await sign({ scope: "admin" });
    expect((await server.fetch("/-/apis", { headers: bearer(admin) })).status).toBe(200);
    expect((await server.fetch("/-/apis", { headers: bearer(all) })).status).toBe(403);
    const view = await sign({ scope: "view" });
    expect((await server.fetch("/-/apis", { headers: bearer(view) })).status).toBe(200);
    expect((await server.fetch("/jobs", { headers: bearer(view) })).status).toBe(200);
    expect((await call("/jobs", view, item))[0]).toBe(403);
    expect((await call("/echo", view))[0]).toBe(403);
    // It is for the whole server only.
    const ofOne = await sign({ scope: "view:jobs" });
    expect((await server.fetch("/jobs", { headers: bearer(ofOne) })).status).toBe(403);
    expect(
      (await server.fetch("/-/apis/other/refresh", { method: "POST", headers: bearer(admin) })).status,
    ).toBe(200);
    expect(readFileSync(join(server.dataDir, "logs", "audit.log"), "utf8")).toContain('"by":"jwt:ada"');
  });

  it.each<[string, () => Promise<string>, string]>([
    ["the issuer is another", () => sign({ scope: "predict" }, { issuer: "https://evil.example" }), '"iss"'],
    ["the audience is another", () => sign({ scope: "predict" }, { audience: "others" }), '"aud"'],
    ["they have expired", () => sign({ scope: "predict" }, { expires: "-10m" }), '"exp"'],
    ["another key signed them", () => sign({ scope: "predict" }, { key: "other" }), "signature"],
    ["they are malformed", async () => "a.b.c", "token"],
    [
      "they have no signature",
      async () =>
        `${Buffer.from('{"alg":"none"}').toString("base64url")}.${Buffer.from('{"scope":"predict"}').toString("base64url")}.`,
      "token",
    ],
  ])("are refused if %s", async (_, make, message) => {
    const [status, body] = await call("/echo", await make());
    expect([status, body.code]).toEqual([401, "unauthorized"]);
    expect(body.message).toContain(message);
  });

  it("cause one request to an issuer that is down, however many tokens come", async () => {
    const down = new TestServer();
    let asked = 0;
    const silent = createServer((_, response) => {
      asked++;
      response.writeHead(500).end();
    });
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const jwks = `http://127.0.0.1:${(silent.address() as { port: number }).port}/keys`;
    await down.start({}, ["--jwt-issuer", issuerUrl, "--jwt-audience", "quern", "--jwt-jwks", jwks]);
    down.deploy(project(ECHO), { wait: false });
    const token = await sign({ scope: "predict" });
    const since = performance.now();
    const answers = [];
    for (let i = 0; i < 40; i++)
      answers.push(await down.post(i % 2 === 0 ? "/echo" : "/jobs", {}, bearer(token)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]));
    for (const { headers } of answers) expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    // After 0, 1, 3, 7, 15, 31 s, and twice a minute from then on.
    expect(asked).toBeLessThanOrEqual(2 + Math.log2(1 + (performance.now() - since) / 1_000));
    expect(await answers[0]!.json()).toMatchObject({
      code: "server_unavailable",
      message: "the keys of the token issuer cannot be fetched now; try again later",
    });
    expect(down.stderr).toContain(`the keys at ${jwks} cannot be fetched: it responds with 500`);
    silent.close();
    await down.stop();
  });

  it("cannot replace headers that only gateways set", async () => {
    const holder = JSON.stringify({ id: "me", grants: [{ scope: "admin", api: null }], rate: null });
    expect((await server.fetch("/-/apis", { headers: { "x-quern-holder": holder } })).status).toBe(401);
  });

  it("are checked at the start if they are configured", async () => {
    const other = new TestServer();
    expect(other.cli(["up", "--jwt-issuer", "https://issuer.example"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("--jwt-audience"),
    });
    await other.stop();
  });
});

describe("signatures", () => {
  const server = new TestServer();
  const file = join(server.dir, "credentials");
  beforeAll(async () => {
    writeFileSync(
      file,
      "# who may\n[ada]\naws_access_key_id = AKIDADA\naws_secret_access_key = s3cret/+\nquern_scope = predict submit:jobs\n\n[bob]\naws_access_key_id=AKIDBOB\naws_secret_access_key=other\nquern_scope=predict:other\n",
    );
    await server.start({}, ["--sigv4-credentials", file, "--sigv4-region", "eu-west-1,us-east-1"]);
    server.deploy(project(ECHO));
  });
  afterAll(() => server.stop());
  /** Signed by curl, an independent implementation. */
  const curl = (user: string, path: string, body: string, ...more: string[]) => {
    const args = [
      "-s",
      "-w",
      " %{http_code}",
      "--aws-sigv4",
      "aws:amz:eu-west-1:execute-api",
      "--user",
      user,
    ];
    const { stdout } = spawnSync(
      "curl",
      [...args, "-H", "Content-Type: application/json", "-d", body, ...more, server.baseUrl + path],
      { encoding: "utf8" },
    );
    return stdout;
  };

  it("grant the scope of their credential", async () => {
    expect((await server.post("/echo", {})).status).toBe(401);
    expect(curl("AKIDADA:s3cret/+", "/echo", '{"a":1}')).toBe('{"a":1} 200');
    expect(curl("AKIDADA:s3cret/+", "/jobs", JSON.stringify(item))).toMatch(/"job_id":.* 200$/);
    expect(curl("AKIDBOB:other", "/echo", "1")).toMatch(/"code":"forbidden".* 403$/);
    expect(curl("AKIDADA:s3cret/+", "/-/keys", '{"scope":"admin"}')).toMatch(/ 403$/);
  });

  it.each([
    ["a wrong secret", "AKIDADA:wrong", [], "does not match this request"],
    ["an unknown key", "AKIDEVE:x", [], "AKIDEVE is unknown"],
  ])("are refused: %s", (_, user, more, message) => {
    const answer = curl(user, "/echo", "1", ...more);
    expect(answer).toContain(message);
    expect(answer).toMatch(/ 401$/);
  });

  /** Signed by Amazon's own library. */
  const signed = async (
    path: string,
    query: Record<string, string | string[]>,
    signingDate: Date,
    body = "[1]",
    change = (search: string) => search,
  ) => {
    const url = new URL(server.baseUrl);
    const signer = new SignatureV4({
      service: "execute-api",
      region: "us-east-1",
      credentials: { accessKeyId: "AKIDADA", secretAccessKey: "s3cret/+" },
      sha256: Sha256,
    });
    const { headers } = await signer.sign(
      {
        ...{ method: "POST", protocol: "http:", hostname: url.hostname, path, query, body },
        headers: { host: url.host, "content-type": "application/json", "x-odd": "  a   b " },
      },
      { signingDate },
    );
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query))
      for (const one of [value].flat()) search.append(name, one);
    const { host: _, ...sent } = headers;
    return server.fetch(`${path}?${change(search.toString().replaceAll("+", "%20"))}`, {
      method: "POST",
      body,
      headers: sent,
    });
  };

  it("match those of Amazon's library for any query", async () => {
    const query = { b: "2", a: [" x", "é/+~*'()"], "c d": "", A: "=&" };
    expect((await signed("/echo", query, new Date())).status).toBe(200);
    // A plus sign is a space, so it is not what was signed as %2B.
    const plus = await signed("/echo", { a: "1+2" }, new Date(), "[1]", (search) =>
      search.replace("%2B", "+"),
    );
    expect([plus.status, await plus.text()]).toEqual([401, expect.stringContaining("does not match")]);
    const old = await signed("/echo", query, new Date(Date.now() - 16 * 60_000));
    expect([old.status, await old.text()]).toEqual([401, expect.stringContaining("15 minutes")]);
  });

  const raw = (request: Partial<ToSign> & { path: string }, send: RequestInit = {}) => {
    const { host } = new URL(server.baseUrl);
    const { host: _, ...headers } = signedHeaders({
      ...{
        accessKeyId: "AKIDADA",
        secret: "s3cret/+",
        signedHeaders: ["content-type", "host", "x-amz-date"],
      },
      ...request,
      headers: { "content-type": "application/json", host, ...request.headers },
    });
    const again = (path = request.path, more: RequestInit = {}) => {
      const method = request.method ?? "POST";
      const body = method === "POST" ? (request.body ?? "") : null;
      return server.fetch(path, { method, body, headers, ...send, ...more });
    };
    return again;
  };

  it("cover body and address: a changed one is refused", async () => {
    const send = raw({ path: "/echo", body: "1" });
    expect((await send("/echo", { body: "2" })).status).toBe(401);
    expect((await send("/echo?x")).status).toBe(401);
    expect((await send()).status).toBe(200);
  });

  it("are valid for one request: a repeat is refused, with the cure", async () => {
    for (const [path, body] of [
      ["/echo", '{"replay":1}'],
      ["/jobs", JSON.stringify({ ...item, config: { replay: 1 } })],
    ] as const) {
      const send = raw({ path, body });
      const statuses = [await send(), await send(), await send()];
      expect(statuses.map(({ status }) => status)).toEqual([200, 401, 401]);
      expect(await statuses[1]!.json()).toMatchObject({
        code: "unauthorized",
        message: expect.stringContaining("used before; sign each request separately"),
      });
    }
    const nonce = (text: string) => ({
      ...{ path: "/echo", body: "7", headers: { "x-amz-nonce": text }, date: new Date() },
      signedHeaders: ["content-type", "host", "x-amz-date", "x-amz-nonce"],
    });
    expect([(await raw(nonce("a"))()).status, (await raw(nonce("b"))()).status]).toEqual([200, 200]);
  });

  it("may repeat for reads within seconds, because a client signs the same request twice in one second", async () => {
    const send = raw({ path: "/jobs", method: "GET", body: "" });
    expect([(await send()).status, (await send()).status]).toEqual([200, 200]);
  });

  it.each([
    ["a header that nobody sent", ["constructor", "content-type", "host", "x-amz-date"]],
    ["another one", ["__proto__", "content-type", "host", "x-amz-date"]],
    ["a header twice", ["content-type", "host", "host", "x-amz-date"]],
    ["headers in disorder", ["host", "content-type", "x-amz-date"]],
    ["no host", ["content-type", "x-amz-date"]],
  ])("are refused if they sign %s, though the secret is right", async (_, names) => {
    for (const path of ["/echo", "/jobs", "/-/apis"]) {
      const answer = await raw({ path, body: "1", signedHeaders: names })();
      expect([answer.status, await answer.json()]).toEqual([
        401,
        expect.objectContaining({ code: "unauthorized", message: expect.stringContaining("signature") }),
      ]);
    }
  });

  it("are valid only for the server's services and regions", async () => {
    const answer = await raw({ path: "/echo", body: "1", service: "s3" })();
    expect([answer.status, await answer.text()]).toEqual([401, expect.stringContaining("--sigv4-service")]);
    const region = await raw({ path: "/echo", body: "1", region: "mars-1" })();
    expect([region.status, await region.text()]).toEqual([401, expect.stringContaining("--sigv4-region")]);
  });

  it("are not taken from the address, and the error says so", async () => {
    const answer = await server.post("/echo?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=ab", 1, {
      authorization: "",
    });
    expect([answer.status, await answer.text()]).toEqual([401, expect.stringContaining("presigned")]);
  });

  it("are needed for GET of an API's address too", async () => {
    const look = (user: string) =>
      spawnSync(
        "curl",
        [
          "-s",
          "-o",
          "/dev/null",
          "-w",
          "%{http_code}",
          "--aws-sigv4",
          "aws:amz:eu-west-1:execute-api",
          "--user",
          user,
          `${server.baseUrl}/echo`,
        ],
        { encoding: "utf8" },
      ).stdout;
    expect([look("AKIDADA:s3cret/+"), look("AKIDADA:wrong")]).toEqual(["200", "401"]);
  });

  it("need a complete credentials file", async () => {
    const other = new TestServer();
    writeFileSync(join(other.dir, "half"), "[ada]\naws_access_key_id = A\n");
    expect(other.cli(["up", "--sigv4-credentials", join(other.dir, "half")])).toMatchObject({
      code: 2,
      err: expect.stringContaining("quern_scope"),
    });
    await other.stop();
  });
});
