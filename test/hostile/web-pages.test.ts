/** A server without keys on someone's laptop, and a page that its owner opens in a browser. */
import { request as httpRequest } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { originsOf } from "../../src/gateway/door/cors.ts";
import { ECHO } from "../harness/projects.ts";
import { TestServer } from "../harness/server.ts";

const server = new TestServer();
const EVIL = "https://evil.example";
const named = (name: string, networking: string, kind = "RealtimeAPI") =>
  `- name: ${name}\n  kind: ${kind}\n  predictor: {path: p.py}\n${networking === "" ? "" : `  networking: {${networking}}\n`}`;

beforeAll(async () => {
  await server.start();
  server.deploy({
    "quern.yaml": [
      named("plain", ""),
      named("listed", `cors_origins: ["${EVIL}"]`),
      named("any", 'cors_origins: ["*"]'),
      named("closed", "cors_origins: []"),
      named("keyed", "auth: key"),
      named("inner", "api_gateway: none"),
      named("jobs", "", "BatchAPI"),
      "- name: split\n  kind: TrafficSplitter\n  apis: [{name: plain, weight: 100}]\n",
    ].join(""),
    "p.py": ECHO,
  });
});
afterAll(() => server.stop());

/** As browsers send it: `fetch` in here would leave out an Origin. */
const ask = (path: string, headers: Record<string, string>, method = "POST", body = "{}") =>
  server.fetch(path, { method, headers, ...(method === "POST" ? { body } : {}) });
/** With a given Host header, which `fetch` does not allow. */
const rawRequest = (port: number, path: string, host: string) =>
  new Promise<number>((resolve, reject) =>
    httpRequest({ host: "127.0.0.1", port, path, method: "POST", headers: { host } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode!);
    })
      .on("error", reject)
      .end("{}"),
  );
const allowed = ({ headers }: Response) => headers.get("access-control-allow-origin");
const json = { "content-type": "application/json" };

describe("a page of another origin", () => {
  it.each(["/plain", "/closed", "/inner", "/split", "/plain/", "/plain?x=1"])(
    "cannot make %s predict or read its answer",
    async (path) => {
      for (const origin of [EVIL, "null", "http://evil.example:8420", "chrome-extension://abc"]) {
        const preflight = await ask(
          path,
          {
            origin,
            "access-control-request-method": "POST",
            "access-control-request-headers": "content-type",
          },
          "OPTIONS",
        );
        expect([preflight.status, allowed(preflight)]).toEqual([204, null]);
        expect(preflight.headers.get("access-control-allow-methods")).toBe(null);
        const answer = await ask(path, { ...json, origin });
        expect([answer.status, allowed(answer)]).toEqual([403, null]);
        expect(await answer.json()).toMatchObject({
          code: "origin_not_allowed",
          message: expect.stringContaining("networking.cors_origins"),
        });
        expect(allowed(await ask(path, { origin }, "GET"))).toBe(null);
      }
    },
  );

  it.each(["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])(
    "is refused also for a form of %s, for which a browser sends no preflight",
    async (type) => {
      for (const origin of [EVIL, "null"]) {
        for (const path of ["/plain", "/inner", "/jobs", "/-/deploy", "/-/keys", "/jobs/01abc/resume"])
          expect([path, (await ask(path, { "content-type": type, origin })).status]).toEqual([path, 403]);
      }
    },
  );

  it("cannot pass for a local page by its name", async () => {
    for (const origin of [
      ...["http://localhost.evil.example", "http://127.0.0.1.evil.example", "http://localhost@evil.example"],
      ...["https://evil.example#localhost", "http://127.0.0.1:80.evil.example", "http://[::1].evil.example"],
      ...["http://evil.example/localhost", "http://xlocalhost", "ftp://localhost", "localhost"],
    ])
      expect([origin, (await ask("/plain", { ...json, origin })).status]).toEqual([origin, 403]);
  });

  it("gets 421 if its host name was made to resolve to this machine", async () => {
    // What a browser sends after DNS rebinding: page and server are one origin for it.
    const { port } = new URL(server.baseUrl);
    for (const path of ["/plain", "/-/livez", "/-/docs", "/jobs"]) {
      const rebound = await rawRequest(Number(port), path, `rebind.evil.example:${port}`);
      expect([path, rebound]).toEqual([path, 421]);
    }
  });

  it.each(["/jobs", "/plain", "/jobs/none", "/-/openapi.json", "/plain/x", "/none/x"])(
    "cannot embed %s, as a script or a style sheet",
    async (path) => {
      const { headers } = await ask(path, { origin: EVIL }, "GET");
      expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
    },
  );

  it("cannot change or read jobs", async () => {
    const job = await server.submit("jobs", { workers: 1, item_list: { items: [1], batch_size: 1 } });
    expect((await ask(`/jobs/${job}`, { origin: EVIL }, "DELETE")).status).toBe(403);
    for (const path of [`/jobs/${job}`, "/jobs", "/-/openapi.json", "/-/livez"])
      expect(allowed(await ask(path, { origin: EVIL }, "GET"))).toBe(null);
    expect(
      allowed(await ask("/jobs", { origin: EVIL, "access-control-request-method": "POST" }, "OPTIONS")),
    ).toBe(null);
  });
});

describe("a page may make predictions", () => {
  it("if it comes from this machine, like the command line", async () => {
    for (const origin of [
      "http://localhost:3000",
      "http://127.0.0.1:5173",
      "http://[::1]",
      "https://localhost",
    ]) {
      const answer = await ask("/plain", { ...json, origin });
      expect([answer.status, allowed(answer), answer.headers.get("vary")]).toEqual([200, origin, "Origin"]);
    }
    expect((await ask("/closed", { ...json, origin: "http://localhost:3000" })).status).toBe(403);
    expect((await ask("/plain", json)).status).toBe(200);
  });

  it("if it comes from the server's own address", async () => {
    expect((await ask("/closed", { ...json, origin: server.baseUrl })).status).toBe(200);
  });

  it("if cors_origins lists its origin or *", async () => {
    expect(allowed(await ask("/listed", { ...json, origin: EVIL }))).toBe(EVIL);
    expect((await ask("/listed", { ...json, origin: "https://other.example" })).status).toBe(403);
    const any = await ask("/any", { ...json, origin: "null" });
    expect([any.status, allowed(any), any.headers.get("access-control-allow-credentials")]).toEqual([
      200,
      "*",
      null,
    ]);
  });

  it("from any origin if it must have a key", async () => {
    const answer = await ask("/keyed", { ...json, origin: EVIL });
    expect([answer.status, allowed(answer)]).toEqual([401, "*"]);
  });

  it("from a public network only if cors_origins says so", async () => {
    const preflight = async (path: string) => {
      const headers = {
        ...{ origin: EVIL, "access-control-request-method": "POST" },
        "access-control-request-private-network": "true",
      };
      return (await ask(path, headers, "OPTIONS")).headers.get("access-control-allow-private-network");
    };
    expect(await preflight("/plain")).toBe(null);
    expect(await preflight("/keyed")).toBe(null);
    expect(await preflight("/listed")).toBe("true");
    expect(await preflight("/any")).toBe("true");
  });
});

describe("the default of cors_origins", () => {
  const address = { name: "a", endpoint: "/a", is_public: true };
  it.each<[boolean, boolean, unknown]>([
    [true, false, "loopback"],
    [true, true, ["*"]],
    [false, false, ["*"]],
    [false, true, ["*"]],
  ])("with loopback %s and keys %s is %s", (isLoopbackListener, needs_key, origins) => {
    const rules = { isLoopbackListener, publicHost: undefined };
    expect(originsOf({ ...address, needs_key, cors_origins: null }, rules)).toEqual(origins);
    expect(originsOf({ ...address, needs_key, cors_origins: [] }, rules)).toEqual([]);
  });
});
