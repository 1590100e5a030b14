/** docs/contract/explain.md: why an API does not serve as it was deployed, each situation made for real. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { explained, findingOf, said } from "../../harness/explained.ts";
import { TestServer } from "../../harness/server.ts";

const PREDICTOR = `
import os, threading, time
class PythonPredictor:
    def __init__(self, config):
        do = config.get("do")
        if do == "raise": raise ValueError("no model here")
        if do == "exit": os._exit(7)
        while do == "hang" and not os.path.exists(config["until"]): time.sleep(0.1)
        if do == "fill": self.big = bytearray(300 * 1024 * 1024)
        if do == "die": threading.Timer(0.2, lambda: os._exit(3)).start()
    def predict(self, payload):
        return 1
`;
const api = (name: string, config = "", more = "", fields = "") =>
  `- name: ${name}\n  predictor: {path: p.py, config: {${config}}${fields}}\n${more}`;
const cpu = (amount: string) => `  compute: {cpu: ${amount}}\n`;

const server = new TestServer({ QUERN_CPUS: "16" });
const over = join(server.dir, "over");
const hang = `do: hang, until: ${over}`;
const deploy = (...apis: string[]) =>
  server.deploy({ "quern.yaml": apis.join(""), "p.py": PREDICTOR }, { wait: false });
beforeAll(async () => {
  await server.start({}, ["--gpus", "1"]);
  deploy(
    api("good"),
    api("holder", "", cpu("6")),
    api("broken", "do: raise"),
    api("deadly", "do: exit"),
    api("dying", "do: die"),
    api("fat", "do: fill", "  compute: {mem: 100Mi}\n"),
    api("huge", "", cpu("17")),
    api("seer", "", "  compute: {gpu: 1}\n"),
    api("sleepy", hang, "  autoscaling: {min_replicas: 0, init_replicas: 0}\n"),
  );
});
afterAll(async () => {
  writeFileSync(over, "");
  await server.stop();
});

describe("the explanation of an API", () => {
  it("says that nothing is wrong, with the figures", async () => {
    const finding = await findingOf(server, "all_well", "good");
    expect(said(finding)).toMatch(/1 of 1 replica serve[\s\S]*no request in the last/);
    const { code, out } = server.cli(["explain", "good"]);
    expect(code, out).toBe(0);
    expect(out).toMatch(/^info: Nothing is wrong with good/);
    const json = JSON.parse(server.cli(["explain", "good", "-o", "json"]).out);
    expect(json).toMatchObject({ api_name: "good", job_id: null, summary: "Nothing is wrong with good" });
  });

  it("names the exception of __init__", async () => {
    const finding = await findingOf(server, "init_failed", "broken");
    expect(said(finding)).toMatch(/does not serve: __init__ fails[\s\S]*no model here[\s\S]*0 of 1 replicas/);
    expect(finding).toMatchObject({ severity: "error", command: "quern logs broken" });
  });

  it("says that the process dies in __init__", async () => {
    const finding = await findingOf(server, "worker_died_in_start", "deadly");
    expect(said(finding)).toMatch(/dies before it is ready[\s\S]*exited with code 7/);
  });

  it("says that replicas keep dying, and how the last one ended", async () => {
    const finding = await findingOf(server, "crash_loop", "dying");
    expect(said(finding)).toMatch(/replicas? ended unexpectedly[\s\S]*exited with code 3/);
  });

  it("says that a replica ran out of memory", async () => {
    const finding = await findingOf(server, "start_out_of_memory", "fat");
    expect(said(finding)).toMatch(/ran out of memory[\s\S]*compute\.mem of 100 MiB/);
    expect(finding.cure).toMatch(/raise compute\.mem/);
  });

  it("says that no waiting gives a replica more than the server has", async () => {
    const finding = await findingOf(server, "compute_too_large", "huge");
    expect(said(finding)).toMatch(/more CPUs than the server has[\s\S]*needs 17 CPU[\s\S]*give out 16 CPU/);
    expect(finding.cure).toMatch(/--cpus/);
  });

  it("says how long __init__ takes of what it may, and then that it took too long", async () => {
    deploy(api("slow", hang, "", ", startup_timeout: 6s"));
    expect(said(await findingOf(server, "start_slow", "slow"))).toMatch(/of the 6 s that it may take/);
    const finding = await findingOf(server, "start_timed_out", "slow");
    expect(said(finding)).toMatch(/was not ready after 6s/);
  });

  it("says that an API sleeps, and that a request wakes it", async () => {
    expect(said(await findingOf(server, "scaled_to_zero", "sleepy"))).toMatch(/gets no requests/);
    const left = new AbortController();
    const request = server
      .fetch("/sleepy", { method: "POST", body: "{}", signal: left.signal })
      .catch(() => {});
    expect(said(await findingOf(server, "waking", "sleepy"))).toMatch(/requests wait for it/);
    left.abort();
    await request;
  });

  it("answers 404 about an API that is not deployed", async () => {
    await expect(explained(server, "nobody")).rejects.toThrow(/404.*api_not_found/);
    expect(server.cli(["explain", "nobody"]).code).toBe(4);
  });
});

describe("the explanation of a rollout", () => {
  beforeAll(
    () =>
      void deploy(
        api("good", "do: raise"),
        api("waiter", "", cpu("9500m")),
        api("blind", "", "  compute: {gpu: 1}\n"),
      ),
  );

  it("names the version that fails beside the one that serves, and the way back", async () => {
    const finding = await findingOf(server, "rollout_failing", "good");
    expect(said(finding)).toMatch(/still serves[\s\S]*ValueError: no model here/);
    expect(finding).toMatchObject({ severity: "warning", command: "quern rollback good" });
  });

  it("names who holds the CPUs that a replica waits for", async () => {
    const finding = await findingOf(server, "compute_held", "waiter");
    expect(said(finding)).toMatch(/1 replica waits for CPUs that API holder and others hold/);
    expect(said(finding)).toMatch(/each replica needs 9.5 CPU[\s\S]*free: [\s\S]*API holder holds 6 CPU/);
    expect(finding.severity).toBe("error");
    const gpus = await findingOf(server, "compute_held", "blind");
    expect(said(gpus)).toMatch(
      /waits for GPUs that [\s\S]*each replica needs 0.2 CPU and 1 GPU[\s\S]*API seer holds .* 1 GPU/,
    );
  });

  it("says that the new version waits for compute beside the old one", async () => {
    deploy(api("good", "", cpu("9600m")));
    const finding = await findingOf(server, "rollout_waits", "good");
    expect(said(finding)).toMatch(
      /waits for compute beside the version that serves[\s\S]*API holder holds 6/,
    );
    expect(finding.severity).toBe("warning");
  });

  it("names the requirement that cannot be installed", async () => {
    const files = { "requirements.txt": "./nothing-here\n", "p.py": PREDICTOR };
    server.deploy({ "quern.yaml": api("needy"), ...files }, { wait: false });
    const finding = await findingOf(server, "requirements_failed", "needy");
    expect(said(finding)).toMatch(/requirements cannot be installed[\s\S]*nothing-here/);
  });

  it("says for how long packages are being installed", async () => {
    const done = join(server.dir, "done");
    const files = { "dependencies.sh": `while [ ! -e ${done} ]; do sleep 0.1; done\n`, "p.py": PREDICTOR };
    server.deploy({ "quern.yaml": api("installs"), ...files }, { wait: false });
    expect(said(await findingOf(server, "installing", "installs"))).toMatch(/being installed, for/);
    writeFileSync(done, "");
    await findingOf(server, "all_well", "installs");
  });
});
