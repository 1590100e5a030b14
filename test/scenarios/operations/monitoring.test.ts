/** The counts of requests and predictions, and their export to Prometheus. */
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { TestServer } from "../../harness/server.ts";

const PREDICTOR = `
import time
class PythonPredictor:
    def __init__(self, config): self.config = config
    def predict(self, payload):
        if payload == "raise": raise ValueError("no good")
        if isinstance(payload, dict) and "sleep" in payload: time.sleep(payload["sleep"])
        return payload
`;
const CONFIG = `
- name: flowers
  predictor: {path: p.py}
  monitoring: {model_type: classification}
- name: keyed
  predictor: {path: p.py}
  monitoring: {model_type: classification, key: label}
- name: prices
  predictor: {path: p.py}
  monitoring: {model_type: regression}
- name: plain
  predictor: {path: p.py}
  autoscaling: {max_replica_concurrency: 2}
- name: constructor
  predictor: {path: p.py}
  monitoring: {model_type: classification}
- name: huge
  predictor: {path: p.py}
  monitoring: {model_type: regression}
- name: jobs
  kind: BatchAPI
  predictor: {path: p.py}
`;

interface Metrics {
  requests: Record<string, number>;
  avg_request_ms: number | null;
  classes?: { name: string; count: number }[];
  values?: { count: number; avg: number; min: number; max: number };
}

describe("the counts of predictions", () => {
  const server = new TestServer();
  beforeAll(async () => {
    await server.start();
    server.deploy({ "quern.yaml": CONFIG, "p.py": PREDICTOR });
  });
  afterAll(() => server.stop());
  const admin = () => ({
    authorization: `Bearer ${readFileSync(join(server.dataDir, "admin-token"), "utf8").trim()}`,
    connection: "close",
  });
  const metricsOf = async (api: string) =>
    ((await (await server.fetch(`/-/apis/${api}`, { headers: admin() })).json()) as { metrics: Metrics })
      .metrics;
  const send = async (api: string, ...payloads: unknown[]) => {
    for (const payload of payloads) await server.post(`/${api}`, payload as object);
  };
  const counted = (api: string, expected: object) =>
    eventually(
      `${api} has counted ${JSON.stringify(expected)}`,
      async () => {
        const metrics = await metricsOf(api).catch(() => undefined);
        return (
          metrics !== undefined && JSON.stringify({ ...metrics, ...expected }) === JSON.stringify(metrics)
        );
      },
      15_000,
    );

  it("count classes, each element of an array separately, and skip predictions without a class", async () => {
    await send("flowers", '"setosa"', ["setosa", "virginica", 7], '"raise"', { no: "class" }, "{");
    await counted("flowers", {
      requests: { "2xx": 3, "4xx": 1, "5xx": 1 },
      classes: [
        { name: "setosa", count: 2 },
        { name: "7", count: 1 },
        { name: "virginica", count: 1 },
      ],
    });
    await send("keyed", { label: "a" }, [{ label: "b" }, { label: "a" }, { other: 1 }]);
    await counted("keyed", {
      classes: [
        { name: "a", count: 2 },
        { name: "b", count: 1 },
      ],
    });
    expect(server.cli(["get", "flowers"]).out).toMatch(/class +count\nsetosa +2\n7 +1\nvirginica +1/);
    expect(server.cli(["logs", "flowers"]).out).toContain("a class must be a str or an int, not dict");
  });

  it("count numbers, with the minimum and the maximum", async () => {
    await send("prices", [1, 2.5], -4, '"none"');
    await counted("prices", { values: { count: 3, avg: -0.5 / 3, min: -4, max: 2.5 } });
    expect(server.cli(["get", "prices"]).out).toMatch(/min +max +avg +count\n-4 +2.5 +-0.166667 +3/);
  });

  it("are never lost because of another API's numbers and names", async () => {
    await send("huge", "1.7e18");
    await counted("huge", { values: { count: 1, avg: 1.7e18, min: 1.7e18, max: 1.7e18 } });
    expect(server.cli(["get"]).code).toBe(0);
    await send("huge", [1e308, 1e308, -1e308], "1".padEnd(400, "0"));
    await send(
      "constructor",
      '"__proto__"',
      ["constructor", "toString", "__proto__"],
      `"${"x".repeat(129)}"`,
    );
    await counted("huge", { requests: { "2xx": 3, "4xx": 0, "5xx": 0 } });
    expect((await metricsOf("huge")).values).toMatchObject({ count: 4, min: -1e308, max: 1e308 });
    await counted("constructor", {
      classes: [
        { name: "__proto__", count: 2 },
        { name: "(others)", count: 1 },
        { name: "constructor", count: 1 },
        { name: "toString", count: 1 },
      ],
    });
    // The counts of one prediction are bounded, even with many or long classes.
    const many = Array.from({ length: 50_000 }, (_, id) => `a class of its own, ${id}`);
    expect((await server.post("/constructor", many)).status).toBe(200);
    expect((await server.post("/huge", Array(50_000).fill(123_456.789))).status).toBe(200);
    await eventually("all are counted", async () => {
      const { classes } = await metricsOf("constructor");
      const shown = classes!.find(({ name }) => name === "(others)")!.count;
      return shown > 49_000 && (await metricsOf("huge")).values!.count === 50_004;
    });
    // For other APIs the exact counts are known too.
    await send("keyed", { label: "c" });
    await eventually("it is counted", async () =>
      ((await metricsOf("keyed")).classes ?? []).some(({ name }) => name === "c"),
    );
    const text = await (await server.fetch("/-/metrics", { headers: admin() })).text();
    expect(text).toContain('quern_predictions_total{api="constructor",class="__proto__"} 2');
    expect(text).toContain('quern_requests_in_flight{api="constructor"} 0');
    expect(server.cli(["get", "huge"]).code).toBe(0);
  });

  it("count a client that did not read its answer as gone, not as an error", async () => {
    const others = async () =>
      (await metricsOf("constructor")).classes!.find(({ name }) => name === "(others)")!.count;
    const before = await others();
    // More than the kernel buffers for a connection.
    const body = Buffer.from(`"${"z".repeat(24_000_000)}"`);
    const socket = connect(Number(new URL(server.baseUrl).port), "127.0.0.1").pause();
    socket.write(
      `POST /constructor HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`,
    );
    socket.write(body);
    await eventually("it is answered", async () => (await others()) > before);
    socket.destroy();
    const text = async () => (await server.fetch("/-/metrics", { headers: admin() })).text();
    await eventually("it has left", async () =>
      (await text()).includes('quern_requests_total{api="constructor",status="left"} 1\n'),
    );
    expect(await text()).not.toContain('quern_requests_total{api="constructor",status="5xx"}');
  });

  it("survive restarts of the controller, the gateway and the whole server, and count nothing twice", async () => {
    process.kill(server.child("controller"), "SIGKILL");
    await send("flowers", '"setosa"');
    await counted("flowers", { requests: { "2xx": 4, "4xx": 1, "5xx": 1 } });
    process.kill(server.child("gateway"), "SIGTERM");
    await eventually(
      "the gateway is back",
      async () =>
        (await server.fetch("/-/livez", { headers: { connection: "close" } }).catch(() => undefined))
          ?.status === 200,
    );
    await server.fetch("/flowers", {
      method: "POST",
      body: '"setosa"',
      headers: { "content-type": "application/json", connection: "close" },
    });
    await counted("flowers", { requests: { "2xx": 5, "4xx": 1, "5xx": 1 } });
    await server.stopProcesses();
    await server.start();
    const { classes, requests } = await metricsOf("flowers");
    expect([requests["2xx"], classes![0]]).toEqual([5, { name: "setosa", count: 4 }]);
    expect(server.cli(["get"]).out).toMatch(/realtime api +status .* avg request +2XX +4XX +5XX/);
  });

  it("are exported to Prometheus, with bounded labels", async () => {
    await eventually("it serves again", async () => (await server.post("/plain", {})).status === 200);
    const busy = Array.from({ length: 5 }, () => server.post("/plain", { sleep: 1.5 }));
    const text = async () => (await server.fetch("/-/metrics", { headers: admin() })).text();
    const value = (all: string, sample: string) =>
      Number(new RegExp(`^${sample.replace(/[{}"+]/g, "\\$&")} (\\S+)$`, "m").exec(all)?.[1]);
    await eventually(
      "what runs is seen",
      async () => value(await text(), 'quern_requests_in_flight{api="plain"}') === 2,
    );
    // The second may have been sent in advance, because earlier ones were fast.
    expect(value(await text(), 'quern_queue_depth{api="plain"}')).toBeLessThanOrEqual(1);
    await Promise.all(busy);
    await server
      .submit("jobs", { workers: 1, item_list: { items: [1, "raise"], batch_size: 1 } })
      .then((id) => server.ended("jobs", id));
    await eventually(
      "all are counted",
      async () => value(await text(), 'quern_request_duration_seconds_count{api="plain"}') === 6,
    );
    const all = await text();
    expect(value(all, 'quern_requests_total{api="plain",status="2xx"}')).toBe(3);
    expect(value(all, 'quern_requests_rejected_total{api="plain",reason="queue_full"}')).toBe(3);
    expect(value(all, 'quern_requests_total{api="plain",status="5xx"}')).toBe(3);
    expect(value(all, 'quern_request_duration_seconds_bucket{api="plain",le="+Inf"}')).toBe(6);
    expect(value(all, 'quern_request_duration_seconds_count{api="plain"}')).toBe(6);
    expect(value(all, 'quern_replicas{api="plain",state="ready"}')).toBe(1);
    expect(all).toMatch(/^quern_jobs\{api="jobs",status="status_\w+"\} 1$/m);
    expect(value(all, 'quern_batches_total{api="jobs",outcome="succeeded"}')).toBe(2);
    expect(value(all, 'quern_batches_total{api="jobs",outcome="failed"}')).toBe(0);
    // Each family once, with help and type; each line a sample.
    for (const line of all.trimEnd().split("\n"))
      expect(line).toMatch(/^(# (HELP|TYPE) quern_\w+ .+|quern_\w+(\{(\w+="[^"]*",?)+\})? \S+)$/);
    expect((await server.fetch("/-/metrics")).status).toBe(401);
  });

  it("begin at zero for an API that was deleted", async () => {
    server.cli(["delete", "prices", "-y"]);
    server.deploy({ "quern.yaml": CONFIG, "p.py": PREDICTOR });
    expect((await metricsOf("prices")).requests["2xx"]).toBe(0);
  });
});
