import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { processStartTime } from "../../../src/base/process-identity.ts";
import { saveWorker } from "../../../src/database/worker-rows.ts";
import { runtimeDirectory } from "../../../src/settings/runtime-directory.ts";
import { eventually } from "../../harness/eventually.ts";
import { TestServer } from "../../harness/server.ts";
import { type Answer, SteadyLoad } from "../../harness/steady-load.ts";

const VERSIONED = `
import os, time
class PythonPredictor:
    def __init__(self, config):
        self.version = config["version"]
        if config.get("gate"): open("%s-%d" % (config["gate"], os.getpid()), "w").close()
        while config.get("gate") and not os.path.exists(config["gate"]): time.sleep(0.02)
        if config.get("broken"): raise ValueError("cannot load model %d" % self.version)
    def predict(self, payload):
        if "begun" in payload: open(payload["begun"], "w").close()
        time.sleep(payload.get("seconds", 0.002))
        return [self.version, os.getpid()]
`;

/** Answers every HELLO as a worker of another release does. */
const STRANGER = `
import socket, struct, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen(8)
body = b'{"reason": "protocol 3 is not supported, only 2"}'
while True:
    connection, _ = listener.accept()
    connection.recv(4096)
    connection.send(struct.pack("<IBBHI", len(body), 74, 0, 0, 0) + body)
    connection.close()
`;

function versioned(version: number, more = "", broken = false): Record<string, string> {
  return {
    "quern.yaml": `- name: v\n  predictor: {path: p.py, config: {version: ${version}, broken: ${broken}}}\n${more}`,
    "p.py": VERSIONED,
  };
}

const versionOf = ({ body }: Answer) => (JSON.parse(body) as [number, number])[0];

describe("a rollout", () => {
  const server = new TestServer();
  beforeAll(() => server.start());
  afterAll(() => server.stop());

  const view = () => server.api("v");
  const ask = async (payload: unknown = {}) =>
    (await (await server.post("/v", payload)).json()) as [number, number];

  it("loses no request while versions change and replicas start, stop and die; versions never go back", async () => {
    const seconds = Number(process.env.QUERN_TEST_ROLLOUT_S ?? 12);
    server.deploy(versioned(0));
    const load = new SteadyLoad(`${server.baseUrl}/v`, 32);
    const ended: { version: number; atMs: number }[] = [];
    const started = performance.now();
    const killed: string[] = [];
    const redeploys = 10;
    for (let version = 1; version <= redeploys; version++) {
      const replicas = version >= 4 && version < 7 ? 4 : 1;
      await server.deployBeside(
        versioned(version, `  autoscaling: {min_replicas: ${replicas}, max_replicas: ${replicas}}\n`),
      );
      ended.push({ version, atMs: performance.now() });
      if (version % 2 === 0) {
        const [victim] = (await view()).replicas.filter(({ state }) => state === "ready");
        process.kill(victim!.pid, "SIGKILL");
        killed.push("replica");
      }
      if (version === 3) process.kill(server.child("controller"), "SIGKILL");
      if (version === 5) process.kill(server.child("gateway"), "SIGTERM");
      if (version === 8) {
        process.kill(server.child("gateway"), "SIGKILL");
        killed.push("gateway");
      }
      const next = started + (seconds * 1000 * version) / redeploys;
      await eventually("it is time for the next", () => performance.now() > next, 60_000);
    }
    const answers = await load.stop();
    const failed = answers.filter(({ status }) => status !== 200);
    const counts = new Map<number, number>();
    for (const { status } of failed) counts.set(status, (counts.get(status) ?? 0) + 1);
    // One replica runs one of these at a time; of a killed gateway's 32 connections each had one.
    expect([...counts.keys()].filter((status) => status !== 502 && status !== 0)).toEqual([]);
    expect(counts.get(502) ?? 0).toBeLessThanOrEqual(killed.filter((what) => what === "replica").length * 2);
    expect(counts.get(0) ?? 0).toBeLessThanOrEqual(32);
    expect(answers.length).toBeGreaterThan(seconds * 10);
    for (const answer of answers.filter(({ status }) => status === 200)) {
      const newest = ended.findLast(({ atMs }) => atMs < answer.startedMs)?.version ?? 0;
      expect(versionOf(answer)).toBeGreaterThanOrEqual(newest);
    }
    console.log(`    ${answers.length} requests; failed, by status: ${JSON.stringify([...counts])}`);
  }, 120_000);

  it("gives requests that were queued before it what the new version takes beside the payload", async () => {
    const files = (takes: string, returned: string) => ({
      "quern.yaml": "- name: takes\n  predictor: {path: p.py}\n",
      "p.py": `import time\nclass PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload${takes}):\n    time.sleep(0.02)\n    return ${returned}\n`,
    });
    server.deploy(files("", "'nothing'"));
    const load = new SteadyLoad(`${server.baseUrl}/takes?tenant=a`, 16);
    const answered = (body: string) => load.answers.some((answer) => answer.body === body);
    await eventually("the first version answers", () => answered('"nothing"'));
    const all = "[query_params['tenant'], headers['content-type']]";
    await server.deployBeside(files(", query_params, headers", all));
    await eventually("the second answers", () => answered('["a","application/json"]'));
    await server.deployBeside(files(", headers", "headers['content-type']"));
    await eventually("the third answers", () => answered('"application/json"'));
    const answers = await load.stop();
    expect([...new Set(answers.map(({ status, body }) => `${status} ${body}`))]).toEqual([
      ...['200 "nothing"', '200 ["a","application/json"]', '200 "application/json"'],
    ]);
  });

  it("keeps the old version serving if the new one cannot start, and shows why", async () => {
    server.deploy(versioned(20));
    const { out, err } = tryDeploy(versioned(21, "", true));
    expect(out + err).toContain("cannot load model 21");
    expect((await ask())[0]).toBe(20);
    const now = await view();
    expect(now).toMatchObject({ status: "error", up_to_date_replicas: 0 });
    expect(now.message).toContain("cannot load model 21");
    server.deploy(versioned(22));
    expect((await ask())[0]).toBe(22);
  });

  const tryDeploy = (files: Record<string, string>) => {
    try {
      return { out: server.deploy(files), err: "" };
    } catch (error) {
      return { out: "", err: (error as Error).message };
    }
  };

  it("rolls back to a version by name, or to the previous one", async () => {
    server.deploy(versioned(30));
    const first = (await view()).api_id;
    server.deploy(versioned(31));
    expect(server.cli(["rollback", "v"]).out).toBe(`updating v to ${first}\n`);
    await eventually("the first serves again", async () => (await ask())[0] === 30);
    const { history, api_id } = await view();
    expect(api_id).toBe(first);
    const other = history.find((version) => version.api_id !== first)!.api_id;
    expect(server.cli(["rollback", "v", other]).code).toBe(0);
    await eventually("the second serves again", async () => (await ask())[0] === 31);
    const wrong = server.cli(["rollback", "v", "nothing"]);
    expect([wrong.code, wrong.err]).toEqual([
      5,
      expect.stringContaining("nothing is not an earlier version of it"),
    ]);
    expect(server.cli(["get", "v"]).out).toContain(`${other} *`);
  });

  it("is cancelled by -f: replicas that are still starting end at once", async () => {
    server.deploy(versioned(32));
    const hanging = versioned(33, "", false);
    hanging["quern.yaml"] = hanging["quern.yaml"]!.replace(
      "broken: false",
      `gate: ${join(server.dir, "gate")}`,
    );
    server.deploy(hanging, { wait: false });
    /** In its `__init__`, so it reads no message until that ends. */
    const isHanging = (pid: number) => existsSync(join(server.dir, `gate-${pid}`));
    const hangingOnes = async () => (await view()).replicas.map(({ pid }) => pid).filter(isHanging);
    const when = async (count: number) => {
      await eventually(`${count} are starting`, async () => (await hangingOnes()).length === count);
      return hangingOnes();
    };
    const first = await when(1);
    expect(server.cli(["refresh", "v"]).code).toBe(0);
    // The next one does not wait for it.
    expect(await when(2)).toEqual(expect.arrayContaining(first));
    expect(server.cli(["refresh", "v", "-f"])).toMatchObject({ code: 0, out: "updating v\n" });
    await eventually("the first is gone", async () => !(await hangingOnes()).includes(first[0]!));
    expect(await when(1)).not.toEqual(first);
    expect((await ask())[0]).toBe(32);
    await server.deployBeside(versioned(34), "-f");
    await when(0);
    expect((await ask())[0]).toBe(34);
  });

  it("lets a long request finish on its version", async () => {
    server.deploy(versioned(40));
    const begun = join(server.dir, "begun");
    const long = ask({ seconds: 2, begun });
    await eventually("it has begun", () => existsSync(begun));
    server.deploy(versioned(41));
    expect((await long)[0]).toBe(40);
    expect((await ask())[0]).toBe(41);
  });

  it("replaces workers that speak no protocol of this release", async () => {
    server.deploy(versioned(45));
    const [before] = (await view()).replicas;
    await server.stopProcesses();
    // As an older Quern that was killed with its parent would have left it: a process with this name and another
    // protocol.
    const socket = join(runtimeDirectory(server.dataDir), "r-stranger.sock");
    const stranger = spawn("python3", ["-c", STRANGER, socket], {
      stdio: "ignore",
      detached: true,
    });
    await eventually("it listens", () => existsSync(socket));
    const db = server.openDatabase();
    const { api_id, predictor_id } = (
      await db.all<{ api_id: string; predictor_id: string }>(
        "SELECT * FROM api_versions WHERE name = 'v' ORDER BY deployed_time DESC",
      )
    )[0]!;
    await saveWorker(db, {
      ...{
        worker_id: "r-stranger",
        api_name: "v",
        api_id,
        predictor_id,
        job_id: null,
        pid: stranger.pid!,
        instance_id: "",
        gpus: "",
        capability: "",
        api_port: 0,
      },
      ...{
        process_start: processStartTime(stranger.pid!)!,
        socket,
        token: "t",
        note: join(server.dir, "note"),
      },
    });
    await db.close();
    await server.start();
    await eventually("another serves", async () => (await view()).status === "live", 20_000);
    expect((await ask())[0]).toBe(45);
    expect((await view()).replicas.map(({ pid }) => pid)).not.toContain(before!.pid);
    await eventually("the stranger is gone", () => processStartTime(stranger.pid!) === undefined);
  });

  it("runs several processes a replica", async () => {
    server.cli(["delete", "v", "-y"]);
    server.deploy({
      ...versioned(50),
      "quern.yaml":
        "- name: v\n  predictor: {path: p.py, processes_per_replica: 3, config: {version: 50}}\n  autoscaling: {max_replica_concurrency: 30}\n",
    });
    expect(await view()).toMatchObject({ status: "live", up_to_date_replicas: 1, requested_replicas: 1 });
    const pids = await Promise.all(Array.from({ length: 12 }, async () => (await ask({ seconds: 0.2 }))[1]));
    expect(new Set(pids).size).toBe(3);
  });
});

describe("an API that scales", () => {
  const server = new TestServer();
  beforeAll(() => server.start());
  afterAll(() => server.stop());
  const replicas = () => server.workers().length;
  const rules =
    "window: 2s, upscale_stabilization_period: 0s, downscale_stabilization_period: 1s, max_downscale_factor: 0";

  it("scales up under load to the target and to zero afterwards, and says why", async () => {
    server.deploy(
      versioned(
        1,
        `  autoscaling: {min_replicas: 0, max_replicas: 3, target_replica_concurrency: 2, ${rules}}\n`,
      ),
    );
    expect(replicas()).toBe(1);
    const load = new SteadyLoad(`${server.baseUrl}/v`, 6, { seconds: 0.05 });
    // Not by the command line, which would block this process, and its load with it.
    const why = async () => {
      const api = await server.api("v");
      return `${api.requested_replicas}: ${api.requested_because}`;
    };
    await eventually("three serve, and it is said why", async () => {
      const said = /^3: .*requests in flight on average over 2 s, 2 per replica wanted/.test(await why());
      return said && replicas() === 3;
    });
    const answers = await load.stop();
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    await eventually("none is left", () => replicas() === 0, 30_000);
    expect(server.cli(["get", "v"]).out).toContain("live");
  }, 90_000);

  it("wakes up for a request, which waits, even while the controller restarts", async () => {
    expect(replicas()).toBe(0);
    expect((await server.post("/v", {})).status).toBe(200);
    await eventually("none is left", () => replicas() === 0, 30_000);
    process.kill(server.child("controller"), "SIGKILL");
    const answers = await Promise.all([server.post("/v", {}), server.post("/v", {})]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  }, 90_000);
});
