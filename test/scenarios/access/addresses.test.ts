/** The addresses of APIs: endpoints, splitters, listeners, pages of other origins, proxies, TLS. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { TestServer } from "../../harness/server.ts";

const NAMED = `
class PythonPredictor:
    def __init__(self, config): self.name = config["name"]
    def predict(self, payload): return self.name if payload is None or isinstance(payload, dict) else payload
`;

const api = (name: string, more = "") =>
  `- name: ${name}\n  predictor: {path: p.py, config: {name: ${name}}}\n${more}`;

describe("addresses", () => {
  const server = new TestServer();
  const deploy = (yaml: string, more: Record<string, string> = {}) =>
    server.deploy({ "quern.yaml": yaml, "p.py": NAMED, ...more });
  beforeAll(() => server.start());
  afterAll(() => server.stop());
  const ask = async (path: string, headers: Record<string, string> = {}) => {
    const response = await server.post(path, {}, headers);
    return { status: response.status, body: await response.json(), api: response.headers.get("x-quern-api") };
  };
  const refusal = (yaml: string) => {
    try {
      deploy(yaml);
      return "deployed";
    } catch (error) {
      return (error as Error).message;
    }
  };

  it("are those of networking.endpoint, and no others", async () => {
    deploy(
      `${api("deep", "  networking: {endpoint: models/deep/}\n")}- name: jobs\n  kind: BatchAPI\n  predictor: {path: p.py, config: {name: jobs}}\n  networking: {endpoint: /models/jobs}\n`,
    );
    expect(await ask("/models/deep")).toMatchObject({ status: 200, body: "deep" });
    expect((await ask("/models/deep/")).status).toBe(200);
    expect((await ask("/models/deep?x=1")).status).toBe(200);
    for (const path of ["/deep", "/models", "/models/deep/x", "/models/deeper"])
      expect([path, (await ask(path)).status]).toEqual([path, 404]);
    const answer = await server.post("/models/jobs", {
      workers: 1,
      item_list: { items: [1], batch_size: 1 },
    });
    const submitted = (await answer.json()) as { job_id: string };
    expect(answer.headers.get("location")).toBe(`${server.baseUrl}/models/jobs/${submitted.job_id}`);
    const { endpoint } = (await (await server.fetch(`/models/jobs/${submitted.job_id}`)).json()) as {
      endpoint: string;
    };
    expect(endpoint).toBe(`${server.baseUrl}/models/jobs/${submitted.job_id}`);
    expect((await fetch(endpoint)).status).toBe(200);
    expect((await server.fetch(`/jobs/${submitted.job_id}`)).status).toBe(404);
    expect(server.cli(["get", "jobs", submitted.job_id]).code).toBe(0);
    expect(server.cli(["get", "deep"]).out).toContain(`endpoint: ${server.baseUrl}/models/deep`);
    expect(server.cli(["predict", "deep", "-"], { input: "{}" }).out).toBe('"deep"\n');
  });

  it("are refused if they conflict", () => {
    expect(refusal(api("a", "  networking: {endpoint: /models/deep/a}\n"))).toContain(
      "a: networking.endpoint: /models/deep/a conflicts with deep at /models/deep",
    );
    expect(refusal(api("b", "  networking: {endpoint: /-/b}\n"))).toContain("does not begin with /-");
    expect(refusal(api("b", "  networking: {endpoint: /a/../b}\n"))).toContain("must be a path");
    expect(
      refusal(
        `${api("a", "  networking: {endpoint: /same}\n")}${api("b", "  networking: {endpoint: same}\n")}`,
      ),
    ).toContain("conflicts with");
  });

  const splitter = (weights: string) => `- name: split\n  kind: TrafficSplitter\n  apis: [${weights}]\n`;

  it("split traffic by weight, and stay with one API by header", async () => {
    deploy(`${api("one")}${api("two")}${splitter("{name: one, weight: 80}, {name: two, weight: 20}")}`);
    const counts = { one: 0, two: 0 };
    for (let i = 0; i < 500; i++) counts[(await ask("/split")).body as "one" | "two"]++;
    // Four standard deviations of a binomial distribution: one failure in 16,000.
    expect(counts.two).toBeGreaterThan(100 - 36);
    expect(counts.two).toBeLessThan(100 + 36);
    for (const user of ["a", "b", "c", "d"]) {
      const answers = await Promise.all(
        Array.from({ length: 10 }, () => ask("/split", { "x-quern-sticky": user })),
      );
      expect(new Set(answers.map(({ body }) => body)).size).toBe(1);
      expect(answers[0]!.api).toBe(answers[0]!.body);
    }
    expect(server.cli(["get"]).out).toContain("traffic splitter");
    expect(server.cli(["get", "split"]).out).toMatch(/one +80/);
  });

  it("change their weights at once, and send copies to a shadow", async () => {
    deploy(
      `${api("one")}${api("two")}${splitter("{name: one, weight: 100}, {name: shady, weight: 100, shadow: true}")}- name: shady\n  predictor: {path: shady.py}\n`,
      {
        "shady.py":
          "class PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload):\n    print('shadowed', payload)\n    raise ValueError('nobody sees')\n",
      },
    );
    for (let i = 0; i < 20; i++) expect(await ask("/split")).toMatchObject({ status: 200, body: "one" });
    await eventually(
      "the shadow has had them all",
      () => server.cli(["logs", "shady"]).out.split("shadowed {}").length === 21,
    );
  });

  it.each([
    ["a sum", "{name: one, weight: 80}", "expected weights to sum to 100 but found 80"],
    ["an API that is not there", "{name: nobody, weight: 100}", "nobody is not deployed"],
    [
      "two shadows",
      "{name: one, weight: 100}, {name: two, weight: 1, shadow: true}, {name: shady, weight: 1, shadow: true}",
      "at most one",
    ],
    ["an API twice", "{name: one, weight: 50}, {name: one, weight: 50}", "one is named twice"],
    ["a part", "{name: one, weight: 50.5}, {name: two, weight: 49.5}", "apis.0.weight"],
    ["nothing", "", "apis"],
  ])("refuse a splitter with a wrong %s", (_, weights, message) => {
    expect(refusal(splitter(weights))).toContain(message);
  });

  it("of a splitter have no replicas to refresh, and the error names the APIs that have", () => {
    expect(server.cli(["refresh", "split"])).toEqual({
      code: 5,
      out: "",
      err: expect.stringMatching(
        /is a TrafficSplitter.*refresh the APIs that it sends to: `quern refresh one`/,
      ),
    });
  });

  it("keep an API that a splitter uses from being deleted", () => {
    const refused = server.cli(["delete", "one", "-y"]);
    expect([refused.code, refused.err]).toEqual([
      5,
      expect.stringContaining("used by the TrafficSplitter split"),
    ]);
    expect(server.cli(["delete", "split", "-y"]).code).toBe(0);
    expect(server.cli(["delete", "one", "-y"]).code).toBe(0);
  });

  it("let pages of other origins read predictions if the API allows it, but never the control plane", async () => {
    deploy(
      `${api("open", "  networking: {cors_origins: ['*']}\n")}${api("some", "  networking: {cors_origins: ['https://a.example']}\n")}${api("closed", "  networking: {cors_origins: []}\n")}`,
    );
    const preflight = async (path: string, origin: string) => {
      const response = await server.fetch(path, {
        method: "OPTIONS",
        headers: {
          origin,
          "access-control-request-method": "POST",
          "access-control-request-headers": "content-type,x-api-key",
        },
      });
      const header = (name: string) => response.headers.get(`access-control-${name}`);
      return [response.status, header("allow-origin"), header("allow-headers"), response.headers.get("vary")];
    };
    expect(await preflight("/open", "https://b.example")).toEqual([204, "*", "content-type,x-api-key", null]);
    expect(await preflight("/some", "https://a.example")).toEqual([
      204,
      "https://a.example",
      "content-type,x-api-key",
      "Origin",
    ]);
    expect(await preflight("/some", "https://b.example")).toEqual([204, null, null, "Origin"]);
    expect(await preflight("/closed", "https://a.example")).toEqual([204, null, null, "Origin"]);
    const answer = await server.post("/some", {}, { origin: "https://a.example" });
    expect([
      answer.headers.get("access-control-allow-origin"),
      answer.headers.get("access-control-allow-credentials"),
    ]).toEqual(["https://a.example", null]);
    const failed = await server.post("/some", "{", { origin: "https://a.example" });
    expect([failed.status, failed.headers.get("access-control-allow-origin")]).toEqual([
      400,
      "https://a.example",
    ]);
    expect((await server.post("/-/keys", {}, { origin: "https://a.example" })).status).toBe(403);
  });

  it("are only for this machine with api_gateway: none", async () => {
    deploy(api("inner", "  networking: {api_gateway: none}\n"));
    expect((await ask("/inner")).status).toBe(200);
    // Forwarded by a proxy on this machine: it came from another machine.
    expect((await ask("/inner", { "x-forwarded-for": "203.0.113.7" })).status).toBe(404);
  });
});
