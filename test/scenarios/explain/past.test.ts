/**
 * docs/contract/explain.md: why an API was slow or failed at a time that is over. The clock of the server's processes
 * moves on by minutes; all else is real: normal minutes, then one with a trouble of each API, then a quiet time.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Explanation, explanationSchema } from "../../../src/contracts/http/explain-operations.ts";
import type { Series } from "../../../src/contracts/http/series-operations.ts";
import { eventually } from "../../harness/eventually.ts";
import { said } from "../../harness/explained.ts";
import { root, TestServer } from "../../harness/server.ts";

const predictor = (seconds: number) => `
import os, time
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        time.sleep(payload.get("sleep", ${seconds}) if isinstance(payload, dict) else 0)
        if "bad" in payload: raise KeyError("no field %s" % payload["bad"])
        if "die" in payload: os._exit(3)
        return 1
`;
const BATCH = `
import os, time
class PythonPredictor:
    def __init__(self, config): self.until = config["until"]
    def predict(self, payload):
        while not os.path.exists(self.until): time.sleep(0.02)
        return payload
`;
const api = (name: string, more = "") =>
  `- name: ${name}\n  compute: {cpu: 50m}\n  predictor: {path: p.py}\n${more}`;
const one = "  autoscaling: {min_replicas: 1, max_replicas: 1}\n";
const two = "  autoscaling: {min_replicas: 2, max_replicas: 2}\n";
const NORMAL_MINUTES = 7;
const MINUTE_MS = 60_000;
/** So that the time of the trouble is the machine's, which workers write into their logs. */
const FIRST_MS = -(NORMAL_MINUTES + 2) * MINUTE_MS;
const REALTIME = ["slowed", "crashing", "crowded", "keyed", "beside", "failing", "fewer", "steady"];

describe("the explanation of a time that is over", () => {
  const server = new TestServer();
  const clock = join(server.dir, "clock");
  const env = {
    NODE_OPTIONS: `--import=${join(root, "test", "harness", "settable-clock.mjs")}`,
    FAKE_CLOCK: clock,
    TZ: "Europe/Berlin",
  };
  const until = join(server.dir, "until");
  let movedMs = FIRST_MS;
  const move = (ms: number) => {
    movedMs += ms;
    writeFileSync(clock, String(movedMs));
  };
  let sent = 0;
  const ask = async (name: string, payload: object = {}) => {
    sent++;
    return (await server.post(`/${name}`, payload)).status;
  };
  const many = (name: string, times: number, payload: object = {}) =>
    Promise.all(Array.from({ length: times }, () => ask(name, payload)));
  const oneByOne = async (name: string, times: number, payload: object = {}) => {
    for (let at = 0; at < times; at++) await ask(name, payload);
  };
  const admin = async (path: string) => {
    const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    return server.fetch(path, { headers: { authorization: `Bearer ${token}`, connection: "close" } });
  };
  /** Gateways report once a second; the clock must not move before. */
  const counted = () =>
    eventually("the requests are in the series", async () => {
      const series = (await (await admin("/-/series?metric=requests&from=5h")).json()) as Series;
      return (series.metrics[0]?.total ?? 0) >= sent;
    });
  const explained = async (name: string, at: string): Promise<Explanation> => {
    const response = await admin(`/-/apis/${name}/explain?at=${encodeURIComponent(at)}`);
    if (!response.ok) throw new Error(await response.text());
    return explanationSchema.parse(await response.json());
  };
  /** What is said about the minute of the trouble, by cause; and the summary. */
  const then = async (name: string) => {
    const { findings, summary, past } = await explained(name, troubleTime);
    return { of: Object.fromEntries(findings.map((one) => [one.cause, said(one)])), summary, past };
  };
  let troubleTime = "";
  let job = "";

  beforeAll(async () => {
    move(0);
    await server.start(env);
    const config = [
      ...["slowed", "crashing", "beside", "failing", "steady"].map((name) => api(name, one)),
      api("crowded", one),
      api("keyed", `${one}  networking: {auth: key}\n`),
      api("fewer", two),
      `- name: jobs\n  kind: BatchAPI\n  compute: {cpu: 50m}\n  predictor: {path: b.py, config: {until: ${until}}}\n`,
    ].join("");
    await server.deployBeside({ "quern.yaml": config, "p.py": predictor(0.1), "b.py": BATCH });
    await server.deployBeside({ "quern.yaml": api("fewer", two), "p.py": predictor(0.11) });
    for (let at = 0; at < NORMAL_MINUTES; at++) {
      move(MINUTE_MS);
      for (const name of REALTIME) await oneByOne(name, 2);
      await counted();
    }
    await trouble();
    move(20 * MINUTE_MS);
  }, 180_000);
  afterAll(async () => {
    writeFileSync(until, "");
    await server.stop();
  });

  /** A minute in which something happens to each API but one. */
  async function trouble(): Promise<void> {
    // All of it happens in one minute of the machine.
    await eventually("a minute begins", () => new Date().getSeconds() < 10, MINUTE_MS);
    move(MINUTE_MS);
    troubleTime = new Date(Date.now() + movedMs).toISOString();
    job = await server.submit("jobs", { workers: 1, item_list: { items: [1], batch_size: 1 } });
    await eventually("the job runs", async () => (await server.job("jobs", job)).status === "status_running");
    await server.deployBeside({
      "quern.yaml": api("slowed", one) + api("fewer", one),
      "p.py": predictor(1.5),
    });
    move(MINUTE_MS);
    await Promise.all([
      oneByOne("slowed", 6),
      oneByOne("fewer", 4, { sleep: 1.5 }),
      oneByOne("beside", 3, { sleep: 1.5 }),
      many("crowded", 30, { sleep: 0.15 }),
      many("failing", 5, { bad: "weight" }),
      many("keyed", 3),
      many("crashing", 1, { die: true }),
    ]);
    await eventually("the replica is back", async () => (await ask("crashing")) === 200);
    await many("crashing", 2, { bad: "size" });
    await oneByOne("steady", 2);
    await counted();
    writeFileSync(until, "");
    await server.ended("jobs", job);
  }

  it("names the deployment after which requests became slow, with the command that goes back", async () => {
    const { of, summary, past } = await then("slowed");
    expect(of.latency_rose).toMatch(
      /slow from .* to .*: 95 % took up to [\d.]+ s instead of \d+ ms[\s\S]*predict\(\) itself/,
    );
    expect(of.version_changed).toMatch(/A new version was deployed[\s\S]*replaced/);
    expect(summary).toMatch(
      /^Requests were slow from .*; a new version was deployed at .*, (1 minute|just) before$/,
    );
    expect(past!.from).not.toBeNull();
    const { findings } = await explained("slowed", troubleTime);
    const { command } = findings.find(({ cause }) => cause === "version_changed")!;
    expect(command).toMatch(/^quern rollback slowed [0-9a-f]+$/);
  });

  it("names the replica that ended, and how", async () => {
    const { of } = await then("crashing");
    expect(of).toMatchObject({
      errors_rose: expect.stringMatching(/ of requests failed from .*, 0 % before/),
      replicas_lost: expect.stringMatching(/1 replica ended unexpectedly[\s\S]*exited with code 3/),
    });
  });

  it("names the load, and says that requests waited for a replica", async () => {
    const { of } = await then("crowded");
    expect(of.latency_rose).toMatch(
      /most of it is the wait for a free replica: up to \d+ requests waited at once/,
    );
    expect(of.requests_rose).toMatch(/15 times as many[\s\S]*30 requests a minute, instead of 2/);
  });

  it("names the job that began", async () => {
    const { of } = await then("beside");
    expect(of.latency_rose).toMatch(/95 % took up to [\d.]+ s/);
    expect(of.jobs_began).toMatch(new RegExp(`jobs ${job} with 1 worker began at .* and ended at`));
  });

  it("says which requests failed in predict(), with the exceptions that the log has of that time", async () => {
    const { of } = await then("failing");
    expect(of.errors_rose).toMatch(
      /100 % of requests failed[\s\S]*5 of them failed in predict\(\)[\s\S]*KeyError/,
    );
  });

  it("says that fewer replicas served", async () => {
    const { of } = await then("fewer");
    expect(of.replicas_fell).toMatch(/Fewer replicas served: 1 instead of 2/);
  });

  it("says that nothing differed, with the figures, and refuses what it cannot know", async () => {
    expect((await then("steady")).of.nothing_differed).toMatch(
      /16 requests, p95 \d+ ms, 0 % with a 5xx status/,
    );
    expect((await then("keyed")).of.nothing_differed).toBeDefined();
    expect((await explained("steady", "1m")).findings).toMatchObject([{ cause: "nothing_known" }]);
    for (const [path, says] of [
      ["/-/apis/jobs/explain?at=5m", /is a BatchAPI[\s\S]*quern explain jobs JOB/],
      ["/-/apis/steady/explain?at=2099-01-01T00:00:00Z", /must not be in the future/],
      ["/-/apis/steady/explain?at=400h", /within the last 14 days/],
      ["/-/apis/steady/explain?at=14:05", /at must be a timestamp such as/],
    ] as const) {
      const response = await admin(path);
      expect([response.status, await response.text()]).toEqual([400, expect.stringMatching(says)]);
    }
  });

  // Near midnight the day is another one, and then it is said.
  it("is found from the explanation of now, and speaks of local time on the command line", async () => {
    const now = await server.cliBeside(["explain", "slowed"], env);
    expect(now.out).toMatch(
      /Requests were slow from (\d{4}-\d\d-\d\d )?\d\d:\d\d to (\d{4}-\d\d-\d\d )?\d\d:\d\d; it is over/,
    );
    const [, at] = /command: quern explain slowed --at (\S+|"[^"]+")$/m.exec(now.out)!;
    const back = await server.cliBeside(["explain", "slowed", "--at", at!.replaceAll('"', "")], env);
    expect(back.out).toMatch(/^warning: Requests were slow from (\d{4}-\d\d-\d\d )?\d\d:\d\d to/);
    expect(back.out).toMatch(/A new version was deployed at (\d{4}-\d\d-\d\d )?\d\d:\d\d, /);
    expect(Math.max(...back.out.split("\n").map((line) => line.length))).toBeLessThanOrEqual(90);
    const wrong = await server.cliBeside(["explain", "jobs", job, "--at", "14:05"], env);
    expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining("--at is for APIs")]);
  });

  it("says that the server was stopped, and knows its last day after a restart", async () => {
    await server.stopProcesses();
    move(3 * MINUTE_MS);
    await server.start(env);
    await eventually("it serves", async () => (await server.post("/steady", {})).ok);
    await many("steady", 3, { sleep: 1.5 });
    const time = new Date(Date.now() + movedMs).toISOString();
    await eventually("it was away", async () => {
      const { findings } = await explained("steady", time);
      return findings.some(({ cause }) => cause === "server_restarted");
    });
    expect((await then("slowed")).of.version_changed).toBeDefined();
  });

  it("knows it by the hour when minutes are no longer kept", async () => {
    move(30 * 60 * MINUTE_MS);
    const { findings } = await explained("steady", troubleTime);
    expect(findings[0]!.cause).toMatch(/nothing_differed|nothing_known/);
  });
});
