/** docs/contract/explain.md: why a job failed and what repairs it, each situation made for real. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findingOf, said } from "../../harness/explained.ts";
import { TestServer } from "../../harness/server.ts";

const PREDICTOR = `
import os, time
class PythonPredictor:
    def __init__(self, config):
        if config.get("broken"): raise ImportError("no module named torch")
    def predict(self, payload):
        for item in payload:
            if item == "exit": os._exit(3)
            if item == "fill":
                self.big = bytearray(b"x") * (300 * 1024 * 1024)
                time.sleep(60)  # until it is noticed
            if item == "sleep": time.sleep(60)
            if item == "bad": raise ValueError("no field divisor")
            if item == "secret": raise ValueError("no answer from postgres://me:topsecret@db/x")
            if item == "worse": raise KeyError("other")
        return payload
`;
const server = new TestServer();
const api = (name: string, more = "", fields = "") =>
  `- name: ${name}\n  kind: BatchAPI\n  predictor: {path: p.py${fields}}\n${more}`;
beforeAll(async () => {
  await server.start();
  await server.deployBeside({
    "quern.yaml": [
      api("jobs"),
      api("small", "  compute: {mem: 100Mi}\n"),
      api("short", "", ", timeout: 1s"),
      api("broken", "", ", config: {broken: true}"),
    ].join(""),
    "p.py": PREDICTOR,
  });
});
afterAll(() => server.stop());
const submit = (name: string, items: unknown[], more: object = {}) =>
  server.submit(name, { workers: 1, item_list: { items, batch_size: 1 }, ...more });

describe("the explanation of a job that has ended", () => {
  it("says that it succeeded", async () => {
    const job = await submit("jobs", [1, 2, 3]);
    const finding = await findingOf(server, "job_succeeded", "jobs", job);
    expect(said(finding)).toMatch(/all 3 batches[\s\S]*on average/);
  });

  it("names the error that dominates, where it was raised, and the redrive of what failed with it", async () => {
    const job = await submit("jobs", [1, "bad", "bad", "bad", "worse"]);
    await server.ended("jobs", job);
    const finding = await findingOf(server, "batches_fail", "jobs", job);
    expect(finding.title).toBe("4 of 5 batches failed, 75 % of them with ValueError: no field divisor");
    expect(said(finding)).toMatch(
      /3 batches with ValueError: no field divisor; the first is batch 1\n[\s\S]*1 batch with KeyError.* \(batch 4\)/,
    );
    expect(said(finding)).toMatch(/raised at File ".*p\.py", line \d+, in predict: .*raise ValueError/);
    expect(finding.command).toBe(`quern job redrive jobs ${job} --like 1`);
    expect(finding.cure).toMatch(/with the version that the job was submitted to/);
    const inApi = await findingOf(server, "batches_fail", "jobs");
    expect(inApi).toMatchObject({ command: `quern explain jobs ${job}` });
  });

  it("says that a redrive has changed nothing, and does not advise the same again", async () => {
    const job = await submit("jobs", [1, "bad", "bad", "worse"]);
    await server.ended("jobs", job);
    expect(server.cli(["job", "redrive", "jobs", job, "--like", "1"]).code).toBe(0);
    const isAgain = ({ evidence }: { evidence: readonly string[] }) => /^round 2 ran/.test(evidence[0]!);
    const finding = await findingOf(server, "batches_fail", "jobs", job, isAgain);
    expect(finding.evidence[0]).toBe("round 2 ran these 2 batches again; all failed again");
    expect(finding.command).toBe(`quern job failures jobs ${job} --by-error`);
    expect(finding.cure).toMatch(/another redrive fails in the same way until the cause is corrected/);
  });

  it("hides the secrets in an error", async () => {
    const job = await submit("jobs", ["secret"]);
    await server.ended("jobs", job);
    const finding = await findingOf(server, "batches_fail", "jobs", job);
    expect(said(finding)).toMatch(/no answer from postgres:\/\/\*\*\*@db/);
    expect(JSON.stringify(finding)).not.toContain("topsecret");
  });

  it("says that batches ran out of memory", async () => {
    const job = await submit("small", ["fill", 1]);
    await server.ended("small", job);
    const finding = await findingOf(server, "out_of_memory", "small", job);
    expect(said(finding)).toMatch(/1 of 2 batches failed[\s\S]*compute\.mem of 100 MiB/);
    expect(finding.cure).toMatch(/smaller batch_size, or a larger compute\.mem/);
  });

  it("says that a batch's worker died, with its exit code", async () => {
    const job = await submit("jobs", ["exit", 1]);
    await server.ended("jobs", job);
    const finding = await findingOf(server, "workers_die", "jobs", job);
    expect(said(finding)).toMatch(/because their worker died[\s\S]*exited with code 3/);
  });

  it("says that batches took longer than predictor.timeout", async () => {
    const job = await submit("short", ["sleep", 1]);
    await server.ended("short", job);
    const finding = await findingOf(server, "batches_time_out", "short", job);
    expect(said(finding)).toMatch(/longer than predictor\.timeout/);
  });

  it("says that it was stopped, and what resume does", async () => {
    const job = await submit("jobs", [1, "sleep", 2]);
    await server.fetch(`/jobs/${job}`, { method: "DELETE" });
    const finding = await findingOf(server, "job_stopped", "jobs", job);
    expect(finding).toMatchObject({ severity: "info", command: `quern job resume jobs ${job}` });
  });

  it("says that it timed out, and how much was left", async () => {
    const job = await submit("jobs", [1, "sleep", 2], { timeout: 2 });
    const finding = await findingOf(server, "job_timed_out", "jobs", job);
    expect(said(finding)).toMatch(
      /timeout of 2 s[\s\S]*of 3 batches succeeded, 0 failed, [23] were never settled/,
    );
    expect(finding.command).toBe(`quern job resume jobs ${job}`);
  });

  it("names the exception of __init__", async () => {
    const job = await submit("broken", [1]);
    const finding = await findingOf(server, "init_failed", "broken", job);
    expect(said(finding)).toMatch(/could not be set up[\s\S]*ImportError: no module named torch/);
    expect(finding.cure).toMatch(/deploy the corrected project and submit again/);
  });

  it("names the requirement that could not be installed", async () => {
    const yaml = api("needy");
    server.deploy({ "quern.yaml": yaml, "p.py": PREDICTOR, "requirements.txt": "./nothing-here\n" });
    const job = await submit("needy", [1]);
    const finding = await findingOf(server, "requirements_failed", "needy", job);
    expect(said(finding)).toMatch(/could not be installed[\s\S]*nothing-here/);
    expect(finding.command).toBe(`quern job logs needy ${job}`);
  });

  it("says that its version is gone", async () => {
    // Before a worker could begin with it.
    expect(server.cli(["pause", "jobs"]).code).toBe(0);
    const job = await submit("jobs", ["sleep"]);
    const db = server.openDatabase();
    await db.run("UPDATE jobs SET api_id = 'gone' WHERE job_id = ?", [job]);
    await db.close();
    expect(server.cli(["unpause", "jobs"]).code).toBe(0);
    const finding = await findingOf(server, "version_gone", "jobs", job);
    expect(finding.cure).toMatch(/submit the job again/);
  });
});
