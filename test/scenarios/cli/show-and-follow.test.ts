/**
 * Showing and following APIs and jobs: `describe`, `get`, `logs`, `refresh`, `job failures`, for people and for
 * programs.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { memberText } from "../../../src/base/json/spans.ts";
import { changeSpecs } from "../../harness/databases.ts";
import { eventually } from "../../harness/eventually.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { root, TestServer } from "../../harness/server.ts";

const server = new TestServer();
beforeAll(async () => {
  await server.start();
  server.deploy(project(OBEDIENT));
});
afterAll(() => server.stop());

const jobFile = (job: unknown) => {
  const file = join(server.dir, "job.json");
  writeFileSync(file, JSON.stringify(job));
  return file;
};

describe("quern describe", () => {
  it("shows replicas, versions and configuration", () => {
    const { code, out } = server.cli(["describe", "echo"]);
    expect(code).toBe(0);
    expect(out).toMatch(
      /^echo \(RealtimeAPI\)\n\nstatus +up-to-date +requested +last update +avg request +2XX\nlive +1 +1 /,
    );
    expect(out).toMatch(/replica +state +up-to-date +process\nr-[0-9a-f]{8} +ready +yes +\d+\n/);
    expect(out).toMatch(/api id +last deployed +age\n[0-9a-f]{24} \* +\d\d \w{3} \d\d [\d:]+ UTC +\d+s\n/);
    expect(out).toContain("configuration\nname: echo\nkind: RealtimeAPI\n");
    expect(JSON.parse(server.cli(["describe", "jobs", "-o", "json"]).out)).toMatchObject({
      kind: "BatchAPI",
      history: [{ api_id: expect.any(String) }],
    });
    expect(server.cli(["describe", "nobody"])).toMatchObject({ code: 4 });
  });
});

describe("a program", () => {
  const records = (text: string) =>
    text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { time: string; source: string; line: string });

  it("gets an API with its original entry and every number as it was written", () => {
    const one = join(server.dir, "given");
    mkdirSync(one);
    const predictor = "{path: p.py, config: {big: 12345678901234567890, half: 1.50}}";
    writeFileSync(join(one, "quern.yaml"), `- {compute: {cpu: 0.1}, name: given, predictor: ${predictor}}\n`);
    writeFileSync(join(one, "p.py"), OBEDIENT);
    expect(server.cli(["deploy", one]).code).toBe(0);
    const { out } = server.cli(["get", "given", "-o", "json"]);
    expect(JSON.parse(out)).toMatchObject({
      spec: { kind: "RealtimeAPI", compute: { cpu: "0.1", gpu: 0 } },
      submitted_api_spec: { name: "given", compute: { cpu: 0.1 } },
    });
    const submitted = memberText(out, "submitted_api_spec");
    expect(submitted.replace(/\s/g, "")).toBe(
      '{"compute":{"cpu":0.1},"name":"given","predictor":{"path":"p.py","config":{"big":12345678901234567890,"half":1.50}}}',
    );
    expect(server.cli(["delete", "given", "-f"]).code).toBe(0);
  });

  it("gets the entry of a version that an older release saved without it", async () => {
    const files = project(OBEDIENT);
    const db = server.openDatabase();
    await changeSpecs(db, "%", (spec) => delete spec.submitted);
    await db.close();
    expect(files["quern.yaml"]).toContain("- name: echo\n  predictor: {path: predictor.py}\n");
    const entry = (name: string) =>
      JSON.parse(memberText(server.cli(["get", name, "-o", "json"]).out, "submitted_api_spec"));
    expect(entry("echo")).toEqual({ name: "echo", kind: "RealtimeAPI", predictor: { path: "predictor.py" } });
    expect(entry("jobs")).toEqual({ name: "jobs", kind: "BatchAPI", predictor: { path: "predictor.py" } });
  });

  it("follows the logs of an API and of a job as records", async () => {
    const following = server.startCli(["logs", "echo", "-f", "-o", "json"]);
    await server.post("/echo", { do: "print", times: 1 });
    await eventually("it follows", () => following.out.endsWith(`${"y".repeat(999)}"}\n`));
    following.process.kill("SIGINT");
    await following.ended;
    const [last] = records(following.out).slice(-1);
    expect(last).toEqual({
      time: expect.any(String),
      source: expect.stringMatching(/^r-/),
      line: "y".repeat(999),
    });
    const id = await server.submit("jobs", { workers: 1, item_list: { items: [1], batch_size: 1 } });
    const ofJob = server.cli(["logs", "jobs", id, "-f", "-o", "json"]);
    expect(ofJob.code).toBe(0);
    expect(records(ofJob.out).at(-1)).toMatchObject({
      source: "server",
      line: "the job ended: status_succeeded",
    });
  });
});

describe("quern refresh", () => {
  it("starts new replicas of the same version, without a request lost", async () => {
    const pid = async () => (await (await server.post("/echo", { do: "pid" })).json()) as number;
    const before = await pid();
    expect(server.cli(["refresh", "echo"])).toEqual({ code: 0, out: "updating echo\n", err: "" });
    await eventually("another process answers", async () => (await pid()) !== before);
    const { history } = JSON.parse(server.cli(["describe", "echo", "-o", "json"]).out) as {
      history: unknown[];
    };
    expect(history).toHaveLength(1);
    expect(server.cli(["refresh", "jobs"])).toMatchObject({
      code: 5,
      err: expect.stringContaining("it has no replicas to refresh"),
    });
  });
});

describe("quern logs", () => {
  const quern = join(root, "bin", "quern");
  const env = { ...process.env, QUERN_DATA_DIR: server.dataDir };
  /** As a user sees it: standard output and error on one terminal. */
  const onTerminal = (...args: string[]) =>
    spawnSync(
      "python3",
      ["-c", "import pty, sys; pty.spawn(sys.argv[1:])", process.execPath, quern, ...args],
      {
        ...{ env, input: "", encoding: "utf8", timeout: 45_000 },
      },
    ).stdout.replaceAll("\r", "");

  it("ends with a hint how to show more, only on a terminal", async () => {
    await server.post("/echo", { do: "print", times: 1 });
    const still = "echo is still running: `quern logs -f echo` follows it";
    await eventually("it is printed", () => onTerminal("logs", "echo").includes("y".repeat(999)));
    expect(onTerminal("logs", "echo")).toMatch(new RegExp(`Z \\S+ .*\\n\\n${still}\\n$`));
    expect(onTerminal("logs", "echo", "-q")).not.toContain(still);
    expect(server.cli(["logs", "echo"]).err).toBe("");
    expect(onTerminal("logs", "jobs")).toBe(
      "\neach job has its own log: `quern get jobs` lists the jobs, `quern logs jobs JOB` prints one\n",
    );
    const gate = join(server.dir, "gate");
    const id = await server.submit("jobs", {
      workers: 1,
      item_list: { items: [{ do: "await", path: gate }], batch_size: 1 },
    });
    expect(onTerminal("logs", "jobs", id)).toContain(`\`quern logs -f jobs ${id}\` follows it\n`);
    writeFileSync(gate, "");
    await server.ended("jobs", id);
    expect(onTerminal("logs", "jobs", id)).not.toContain("follows it");
  });

  it("-f ends when the API is deleted", async () => {
    server.deploy({
      ...project(OBEDIENT),
      "quern.yaml": "- {name: brief, predictor: {path: predictor.py}}\n",
    });
    await server.post("/brief", { do: "print", times: 1 });
    const following = server.startCli(["logs", "-f", "brief"]);
    await eventually("it follows", () => following.out.includes("y".repeat(999)));
    expect(server.cli(["delete", "brief", "-f"])).toEqual({ code: 0, out: "deleting brief\n", err: "" });
    expect(await following.ended).toBe(0);
    expect(server.cli(["logs", "brief"])).toMatchObject({ code: 4 });
  });
});

describe("quern job", () => {
  it("failures shows batch, attempts, error, items, and a traceback", () => {
    const items = [1, { do: "raise", id: 7 }, { do: "raise", id: 8 }];
    const file = jobFile({ workers: 1, item_list: { items, batch_size: 1 } });
    const waited = server.cli(["job", "submit", "jobs", file, "--wait"]);
    expect(waited.code).toBe(11);
    const id = /job id: (\w+)/.exec(waited.out)![1]!;
    expect(waited.out).toContain(`hint: \`quern job failures jobs ${id}\` shows them`);
    const { out } = server.cli(["job", "failures", "jobs", id]);
    expect(out).toMatch(
      /^batch +attempts +error +items\n1 +1 +ValueError: no good: 7 +\[\{"do":"raise","id":7\}\]\n2 /,
    );
    expect(out).toContain("traceback of the last one:\nTraceback (most recent call last):");
    const first = server.cli(["job", "failures", "jobs", id, "--limit", "1"]);
    expect(first.err).toBe("more: --cursor 1; counts by error: --by-error; all: --export FILE\n");
    const second = server.cli(["job", "failures", "jobs", id, "--cursor", "1", "-o", "json"]);
    expect(JSON.parse(second.out)).toMatchObject({ failures: [{ batch_index: 2 }], next_cursor: null });
    const listed = server.cli(["job", "list", "jobs", "--status", "completed_with_failures", "--limit", "1"]);
    expect(listed.out).toContain(id);
    expect(server.cli(["job", "list", "jobs", "--status", "done"])).toMatchObject({ code: 1 });
  });

  it("submit --dry-run prints the files and submits nothing; --idempotency-key submits once", () => {
    const path = server.writeInput("dry.jsonl", "{}\n");
    const file = jobFile({ workers: 1, delimited_files: { store_paths: [path], batch_size: 1 } });
    expect(server.cli(["job", "submit", "jobs", file, "--dry-run"])).toEqual({
      code: 0,
      out: `${path}\nvalidations passed\n`,
      err: "",
    });
    const json = server.cli(["job", "submit", "jobs", file, "--dry-run", "-o", "json"]);
    expect(JSON.parse(json.out)).toEqual({ files: [path], file_count: 1, total_bytes: 3, batch_count: null });
    const once = () => server.cli(["job", "submit", "jobs", file, "--idempotency-key", "night-1"]).out;
    expect(once()).toBe(once());
  });
});

describe("quern get -w", () => {
  it("prints repeatedly until it is interrupted, and `head` ends it silently", async () => {
    const child = spawn(process.execPath, [join(root, "bin", "quern"), "get", "-w"], {
      env: { ...process.env, QUERN_DATA_DIR: server.dataDir },
    });
    let out = "";
    child.stdout.on("data", (text) => (out += String(text)));
    await eventually("it printed twice", () => out.split("realtime api").length > 2);
    child.kill("SIGINT");
    await eventually("it has ended", () => child.exitCode !== null || child.signalCode !== null);
    expect(child.signalCode).toBe("SIGINT");
    const head = spawnSync(
      "sh",
      ["-c", `'${process.execPath}' '${join(root, "bin", "quern")}' get -w | head -1`],
      {
        env: { ...process.env, QUERN_DATA_DIR: server.dataDir },
        encoding: "utf8",
        timeout: 20_000,
      },
    );
    expect([head.status, head.stderr]).toEqual([0, ""]);
  });

  it("does what it is to do if nobody can read its messages, and says why data cannot be written", () => {
    const quern = `'${process.execPath}' '${join(root, "bin", "quern")}'`;
    const env = { ...process.env, QUERN_DATA_DIR: server.dataDir };
    const sh = (command: string) => spawnSync("sh", ["-c", command], { encoding: "utf8", env });
    const created = sh(`${quern} keys create --scope predict 2>/dev/full`);
    expect([created.status, created.stdout]).toEqual([0, expect.stringMatching(/^\S{20,}\n$/)]);
    const listed = sh(`${quern} keys list >/dev/full`);
    expect(listed.status).toBe(1);
    expect(listed.stderr).toBe(
      "error: the output could not be written: ENOSPC: no space left on device, write\n",
    );
  });
});
