/** docs/contract/explain.md: why requests are slow or fail, each situation made for real. */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Finding } from "../../../src/contracts/http/explain-operations.ts";
import { explained, findingOf, said } from "../../harness/explained.ts";
import { TestServer } from "../../harness/server.ts";

const PREDICTOR = `
import os, time
class PythonPredictor:
    def __init__(self, config):
        self.config = config
        if "fill" in config: self.big = bytearray(b"x") * (config["fill"] * 1024 * 1024)
    def predict(self, payload):
        if "sleep" in payload: time.sleep(payload["sleep"])
        if "until" in payload:
            while not os.path.exists(payload["until"]): time.sleep(0.02)
        if "bad" in payload: raise KeyError("no field %s" % payload["bad"])
        return 1
`;
const api = (name: string, more = "", fields = "") =>
  `- name: ${name}\n  predictor: {path: p.py${fields}}\n${more}`;
const one = "  autoscaling: {min_replicas: 1, max_replicas: 1";
const server = new TestServer();
const until = join(server.dir, "until");
beforeAll(async () => {
  await server.start();
  await server.deployBeside({
    "quern.yaml": [
      api("queued", `${one}}\n`),
      api("crowded", `${one}}\n`, ", threads_per_process: 1"),
      api("slow", "", ", threads_per_process: 5"),
      api("failing"),
      api("full", `${one}, max_replica_concurrency: 2}\n`),
      api("late", `${one}}\n`, ", timeout: 1s, threads_per_process: 1"),
      api("busy", `${one}}\n`),
      api("near", "  compute: {mem: 400Mi}\n", ", config: {fill: 365}"),
      api("keyed", "  networking: {auth: key}\n"),
      api("open"),
      api("mended"),
      "- name: split\n  kind: TrafficSplitter\n  apis: [{name: open, weight: 60}, {name: failing, weight: 40}]\n",
    ].join(""),
    "p.py": PREDICTOR,
  });
});
afterAll(async () => {
  writeFileSync(until, "");
  await server.stop();
});
const ask = async (name: string, payload: object, headers: Record<string, string> = {}) =>
  (await server.post(`/${name}`, payload, headers)).status;
const many = (name: string, times: number, payload: object) =>
  Promise.all(Array.from({ length: times }, () => ask(name, payload)));
const left = new AbortController();
const releaseCrowded = new AbortController();
const held = (name: string, times: number, { signal } = left) =>
  Array.from({ length: times }, () => {
    const body = JSON.stringify({ until });
    const headers = { "content-type": "application/json" };
    return server.fetch(`/${name}`, { method: "POST", body, headers, signal }).catch(() => {});
  });

describe("the explanation of an API", () => {
  it("says that requests mostly wait for a replica", async () => {
    await many("queued", 12, { sleep: 0.1 });
    const finding = await findingOf(server, "queue_wait_dominates", "queued");
    expect(said(finding)).toMatch(/mostly wait for a free replica: \d+ %[\s\S]*wait for a replica: p50/);
    expect(finding.cure).toMatch(/max_replicas \(now 1\)[\s\S]*threads_per_process/);
  });

  it("says that predict() itself is slow", async () => {
    await many("slow", 5, { sleep: 1.1 });
    const finding = await findingOf(server, "predict_slow", "slow");
    expect(said(finding)).toMatch(/predict\(\) itself is slow[\s\S]*wait for a replica: p50 \d+ ms/);
    expect(finding.cure).toMatch(/more replicas do not make one prediction faster/);
  });

  it("says first that predict() is slow if it takes more of the time than the wait", async () => {
    for (let request = 0; request < 5; request++) await ask("crowded", { sleep: 1.1 });
    const requests = held("crowded", 7, releaseCrowded);
    await findingOf(server, "queue_wait_dominates", "crowded");
    const { findings } = await explained(server, "crowded");
    const causes = findings.map(({ cause }) => cause);
    expect(causes.slice(0, 2)).toEqual(["predict_slow", "queue_wait_dominates"]);
    expect(findings[0]!.title).toMatch(/itself is slow: 1\.\d s on average, without the wait/);
    releaseCrowded.abort();
    await Promise.all(requests);
  });

  it("names the exception that most requests fail with", async () => {
    await many("failing", 6, { bad: "weight" });
    await many("failing", 2, {});
    const finding = await findingOf(server, "predict_errors", "failing");
    expect(said(finding)).toMatch(/75 % of requests fail in predict\(\): KeyError: 'no field weight'/);
    expect(said(finding)).toMatch(/6 times at the end of the log/);
    expect(finding.severity).toBe("error");
  });

  it("says so of the APIs behind a splitter, with their shares", async () => {
    const finding = await findingOf(server, "predict_errors", "split");
    expect(finding.title).toMatch(/^failing \(40 %\): 75 % of requests fail/);
  });

  it("says until when requests failed once many have succeeded since", async () => {
    await many("mended", 5, { bad: "size" });
    await findingOf(server, "predict_errors", "mended", undefined, ({ severity }) => severity !== "info");
    for (let round = 0; round < 4; round++) await many("mended", 10, {});
    const isOver = ({ severity }: Finding) => severity === "info";
    const finding = await findingOf(server, "predict_errors", "mended", undefined, isOver);
    expect(finding.title).toMatch(
      /^\d+ % of requests failed in predict\(\) until .*Z, none of \d+ requests since$/,
    );
  });

  it("says that the queue was full", async () => {
    const statuses = await many("full", 8, { sleep: 0.3 });
    expect(statuses).toContain(503);
    const finding = await findingOf(server, "rejected_queue_full", "full");
    expect(said(finding)).toMatch(/refused because too many waited[\s\S]*times queue_full \(503\)/);
  });

  it("says that predict() or the wait for it took longer than the timeout", async () => {
    const [first, second] = await many("late", 2, { sleep: 1.6 });
    expect([first, second].sort()).toEqual([503, 504]);
    expect(said(await findingOf(server, "rejected_timeout", "late"))).toMatch(
      /longer than predictor.timeout/,
    );
    expect(said(await findingOf(server, "rejected_queue_timeout", "late"))).toMatch(/no replica was free/);
  });

  it("says that max_replicas holds the API back", async () => {
    const requests = held("busy", 4);
    const all = ({ evidence }: Finding) => evidence.join().includes("4 requests in flight");
    const finding = await findingOf(server, "at_max_replicas", "busy", undefined, all);
    expect(said(finding)).toMatch(/4 requests in flight[\s\S]*it would want 4 replicas/);
    left.abort();
    await Promise.all(requests);
  });

  it("says that a replica came close to its memory limit", async () => {
    const finding = await findingOf(server, "memory_near_limit", "near");
    expect(said(finding)).toMatch(/within 10 % of its memory limit of 400 MiB[\s\S]*9\d % of compute\.mem/);
  });

  it("says with the figures that nothing is wrong", async () => {
    await many("open", 3, {});
    const finding = await findingOf(server, "all_well", "open", undefined, ({ evidence }) =>
      evidence.join().includes("3 requests"),
    );
    expect(said(finding)).toMatch(/0 % of them with a 5xx status[\s\S]*latency: p50 [\d.]+ m?s, p95/);
  });

  it("says that bodies were too large", async () => {
    const { port } = new URL(server.baseUrl);
    const socket = connect(Number(port), "127.0.0.1");
    socket.write(`POST /open HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: ${2 ** 40}\r\n\r\n`);
    const [answer] = (await once(socket, "data")) as [Buffer];
    socket.destroy();
    expect(String(answer)).toMatch(/^HTTP\/1.1 413/);
    const finding = await findingOf(server, "rejected_body_too_large", "open");
    expect(said(finding)).toMatch(/1 request refused because their body was too large/);
  });

  it("counts the requests that the gateway refused for their key, rate or size", async () => {
    expect(await ask("keyed", {})).toBe(401);
    const args = ["keys", "create", "--scope", "predict", "--api", "keyed", "--rate", "1/m"];
    const authorization = `Bearer ${server.cli(args).out.trim().split(/\s+/).at(-1)}`;
    expect(await ask("keyed", {}, { authorization })).toBe(200);
    expect(await ask("keyed", {}, { authorization })).toBe(429);
    const key = await findingOf(server, "rejected_key", "keyed");
    expect(said(key)).toMatch(/1 request refused because they had no key[\s\S]*1 times unauthorized \(401\)/);
    const rate = await findingOf(server, "rejected_rate_limited", "keyed");
    expect(said(rate)).toMatch(/1 times rate_limited \(429\)/);
  });
});
