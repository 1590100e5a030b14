/** docs/contract/explain.md: why a job in progress waits or is slow, each situation made for real. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findingOf, said } from "../../harness/explained.ts";
import { TestServer } from "../../harness/server.ts";

const PREDICTOR = `
import os, time
class PythonPredictor:
    def __init__(self, config, job_spec=None):
        until = config.get("start")
        while until and not os.path.exists(until): time.sleep(0.05)
        if "fill" in config: self.big = bytearray(b"x") * (config["fill"] * 1024 * 1024)
    def predict(self, payload):
        for item in payload:
            if isinstance(item, str):
                while not os.path.exists(item): time.sleep(0.02)
            elif item < 0: raise ValueError("no good")
            else: time.sleep(item / 1000)
        return payload
`;
const server = new TestServer({ QUERN_CPUS: "8" });
const over = join(server.dir, "over");
const api = (name: string, more = "", fields = "") =>
  `- name: ${name}\n  kind: BatchAPI\n  predictor: {path: p.py${fields}}\n${more}`;
beforeAll(async () => {
  await server.start();
  await server.deployBeside({
    "quern.yaml": [
      api("jobs"),
      api("paused"),
      api("big", "  compute: {cpu: 5}\n"),
      api("slow", "", `, startup_timeout: 4s, config: {start: ${over}}`),
      api("near", "  compute: {mem: 400Mi}\n", ", config: {fill: 365}"),
    ].join(""),
    "p.py": PREDICTOR,
  });
});
afterAll(async () => {
  writeFileSync(over, "");
  await server.stop();
});
const submit = (name: string, items: unknown[], more: object = {}) =>
  server.submit(name, { workers: 1, item_list: { items, batch_size: 1 }, ...more });

describe("the explanation of a job", () => {
  it("says with the figures that it makes progress", async () => {
    const job = await submit("jobs", [1, 1, 1, 1, over]);
    const finding = await findingOf(server, "all_well", "jobs", job, ({ title }) => /80 %/.test(title));
    expect(said(finding)).toMatch(
      /The job runs: 80 % of 5 batches[\s\S]*1 worker of 1 running, 1 batch left/,
    );
    const { code, out } = server.cli(["explain", "jobs", job]);
    expect([code, out]).toEqual([0, expect.stringMatching(/^(info|warning): /)]);
    for (const line of out.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
  });

  it("names the batch that runs much longer than the others", async () => {
    const job = await submit("jobs", [...Array.from({ length: 10 }, () => 5), over]);
    const finding = await findingOf(server, "straggler", "jobs", job);
    expect(said(finding)).toMatch(/Batch 10 has run for 3[\d.]* s; the others take \d+ ms/);
    expect(said(finding)).toMatch(/the job waits for it alone/);
  });

  it("says that it may not end before its timeout", async () => {
    const job = await submit(
      "jobs",
      Array.from({ length: 100 }, () => 500),
      { timeout: 20 },
    );
    const finding = await findingOf(server, "timeout_near", "jobs", job);
    expect(said(finding)).toMatch(/of 20 s are left[\s\S]*batches not settled[\s\S]*they need about/);
    await server.fetch(`/jobs/${job}`, { method: "DELETE" });
  });

  it("says that attempts fail and are repeated", async () => {
    const queue_dead_letter_queue = { arn: "bad", max_receive_count: 1000 };
    const job = await submit("jobs", [-1, over], { queue_dead_letter_queue });
    const finding = await findingOf(server, "attempts_fail", "jobs", job);
    expect(said(finding)).toMatch(/failed; the batches are tried again/);
    await server.fetch(`/jobs/${job}`, { method: "DELETE" });
  });

  it("says that it is paused, and by which command it continues", async () => {
    const job = await submit("jobs", [over]);
    await server.post(`/jobs/${job}/pause`, {});
    const finding = await findingOf(server, "job_paused", "jobs", job);
    expect(finding.command).toBe(`quern job unpause jobs ${job}`);
  });

  it("says that its API is paused", async () => {
    expect(server.cli(["pause", "paused"]).code).toBe(0);
    const job = await submit("paused", [1]);
    const finding = await findingOf(server, "api_paused", "paused", job);
    expect(finding).toMatchObject({ severity: "warning", command: "quern unpause paused" });
    expect((await findingOf(server, "api_paused", "paused")).title).toMatch(
      /none of its jobs begins a batch/,
    );
  });

  it("names who holds the compute that its workers wait for, to those who may know", async () => {
    await submit("big", [over]);
    const job = await submit("big", [1]);
    const finding = await findingOf(server, "compute_held", "big", job);
    expect(said(finding)).toMatch(/1 worker waits for CPUs that job \w+ of big/);
    expect(said(finding)).toMatch(/each worker needs 5 CPU[\s\S]*of big holds 5 CPU/);
    expect((await findingOf(server, "compute_held", "big")).title).toContain(`Job ${job}: 1 worker waits`);
  });

  it("says how long __init__ of its worker takes", async () => {
    const job = await submit("slow", [1]);
    const finding = await findingOf(server, "start_slow", "slow", job);
    expect(said(finding)).toMatch(/of the 4 s that it may take/);
    const failed = await findingOf(server, "init_failed", "slow", job);
    expect(said(failed)).toMatch(/was not ready after 4s/);
  });

  it("says for how long its packages are being installed", async () => {
    const script = `while [ ! -e ${over} ]; do sleep 0.1; done\n`;
    const files = { "dependencies.sh": script, "p.py": PREDICTOR };
    server.deploy({ "quern.yaml": api("installs"), ...files });
    const job = await submit("installs", [1]);
    expect(said(await findingOf(server, "installing", "installs", job))).toMatch(/being installed, for/);
    expect((await findingOf(server, "installing", "installs")).severity).toBe("info");
  });

  it("says that a worker came close to its memory limit", async () => {
    const job = await submit("near", [over]);
    const finding = await findingOf(server, "memory_near_limit", "near", job);
    expect(said(finding)).toMatch(/memory limit of 400 MiB[\s\S]*9\d % of compute\.mem/);
  });

  it("names nobody else to a key that may only submit", async () => {
    const job = await submit("big", [1]);
    const args = ["keys", "create", "--scope", "submit", "--api", "big"];
    const key = server.cli(args).out.trim().split(/\s+/).at(-1);
    const headers = { authorization: `Bearer ${key}` };
    const response = await server.fetch(`/big/${job}/explain`, { headers });
    const text = await response.text();
    expect(response.status, text).toBe(200);
    expect(text).toMatch(/compute_held/);
    expect(text).not.toMatch(/holds \d/);
    expect((await server.fetch("/-/apis/big/explain", { headers })).status).toBe(403);
    expect((await server.fetch(`/jobs/${job}/explain`, { headers })).status).toBe(403);
  });
});
