/** `describe`, `refresh`, `job failures`, `job submit --dry-run`, `-w`, `init`, `doctor`, `completion`: as a user meets them. */
import { spawn, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { memberText } from "../../src/base/json-text.ts";
import { TEMPLATES } from "../../src/cli/init.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { eventually } from "../harness/eventually.ts";
import { OBEDIENT, project } from "../harness/projects.ts";
import { root, TestServer } from "../harness/server.ts";

// More than any machine that this runs on.
const server = new TestServer({ QUERN_CPUS: "999", QUERN_MEMORY: "99Ti" });
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

  it("gets an API with its entry as it was given, and every number as it was written", () => {
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

  it("gets the entry of a version that an older release has saved without it", async () => {
    const files = project(OBEDIENT);
    const db = openSqliteDatabase(join(server.dataDir, "quern.db"));
    await db.run("UPDATE api_versions SET spec_json = json_remove(spec_json, '$.submitted')");
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

  it("lists and deletes environments", () => {
    const named = () =>
      (
        JSON.parse(server.cli(["env", "list", "-o", "json"]).out) as { name: string; is_current: boolean }[]
      ).map(({ name, is_current }) => `${name}${is_current ? " *" : ""}`);
    expect(server.cli(["env", "add", "far", "--host", "https://far.example"]).code).toBe(0);
    expect(server.cli(["env", "default", "far"]).code).toBe(0);
    expect(named()).toEqual(["local", "far *"]);
    expect(server.cli(["env", "delete", "far"]).code).toBe(0);
    expect(named()).toEqual(["local *"]);
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
  /** What a person sees: standard output and error are one terminal. */
  const onTerminal = (...args: string[]) =>
    spawnSync(
      "python3",
      ["-c", "import pty, sys; pty.spawn(sys.argv[1:])", process.execPath, quern, ...args],
      {
        ...{ env, input: "", encoding: "utf8", timeout: 45_000 },
      },
    ).stdout.replaceAll("\r", "");

  it("ends with what shows more, on a terminal only", async () => {
    await server.post("/echo", { do: "print", times: 1 });
    const still = "echo still runs: `quern logs -f echo` follows it";
    await eventually("it is printed", () => onTerminal("logs", "echo").includes("y".repeat(999)));
    expect(onTerminal("logs", "echo")).toMatch(new RegExp(`Z \\S+ .*\\n\\n${still}\\n$`));
    expect(onTerminal("logs", "echo", "-q")).not.toContain(still);
    expect(server.cli(["logs", "echo"]).err).toBe("");
    expect(onTerminal("logs", "jobs")).toBe(
      "\neach job has a log of its own: `quern get jobs` lists the jobs, `quern logs jobs JOB` prints one's\n",
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
    expect(out).toContain("the last one's traceback:\nTraceback (most recent call last):");
    const first = server.cli(["job", "failures", "jobs", id, "--limit", "1"]);
    expect(first.err).toBe("more: --cursor 1; counted: --by-error; all of them: --export FILE\n");
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

describe("quern patch", () => {
  it("changes the configuration of a deployed API, which keeps the files that it was deployed with", async () => {
    const directory = join(server.dir, "patched");
    const write = (greeting: string, more = "") =>
      writeFileSync(
        join(directory, "quern.yaml"),
        `- {name: patched, predictor: {path: p.py, config: {greeting: ${greeting}}}}\n${more}`,
      );
    const code = (says: string) =>
      writeFileSync(
        join(directory, "p.py"),
        `class PythonPredictor:\n  def __init__(self, config): self.config = config\n  def predict(self, payload): return [self.config["greeting"], "${says}"]\n`,
      );
    const here = (...args: string[]) => server.cli(args, { cwd: directory });
    mkdirSync(directory);
    write("hello");
    code("first");
    expect(here("deploy", "--wait").code).toBe(0);
    write("goodbye", "- {name: unknown, predictor: {path: p.py}}\n");
    code("second");
    expect(here("patch")).toMatchObject({
      code: 4,
      err: expect.stringContaining("unknown is not deployed; `quern deploy` deploys it"),
    });
    const patched = here("patch", "quern.yaml", "patched", "--wait");
    expect(patched).toMatchObject({ code: 0, out: "updating patched (RealtimeAPI)\n" });
    expect(await (await server.post("/patched", {})).json()).toEqual(["goodbye", "first"]);
    expect(here("patch", "quern.yaml", "patched").out).toBe("patched is up to date\n");
    writeFileSync(join(directory, "app.yaml"), "- {kind: app, name: houses}\n");
    expect(here("patch", "app.yaml")).toMatchObject({
      code: 2,
      err: expect.stringContaining("app.yaml is an application's"),
    });
    expect(here("delete", "patched", "-f").code).toBe(0);
  });
});

describe("quern export api", () => {
  const target = (name: string) => join(server.dir, `exported-${name}`);
  const write = (directory: string, files: Record<string, string>) => {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(directory, name)), { recursive: true });
      writeFileSync(join(directory, name), text);
    }
  };
  /** Writes a file beside its own, and so does Python. */
  const code =
    "import other\nopen('cache.bin', 'w').close()\nclass PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload): return 1\n";
  const config = [
    'big: 12345678901234567890, half: 1.50, tiny: 1e-400, yes: "no", date: "2020-01-01"',
    'lines: "a \\n  b\\n\\n", half_pair: "\\ud800", "007": 007, empty: {}, none: null',
  ].join(", ");
  const yaml = (more: string) =>
    `# A comment\n- name: whole\n  compute: {cpu: 0.1}\n  predictor: {path: code/p.py, python_path: code, env: {A: "1"}, config: {${config}${more}}}\n`;
  const ask = async (path: string) => {
    const key = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    const response = await server.fetch(`/-/apis/whole${path}`, { headers: { "x-api-key": key } });
    return (await response.json()) as { api_id: string; status: number; message: string };
  };

  it("writes a directory which, deployed, is the same version again", async () => {
    const source = join(server.dir, "source");
    write(source, {
      "quern.yaml": yaml(""),
      "code/p.py": code,
      "code/other.py": "",
      ".hidden/file": "",
      "data/.env": "",
      "left-out.bin": "",
      ".quernignore": "!.hidden\nleft-out.bin\n",
    });
    expect(server.cli(["deploy", source, "--wait"]).code).toBe(0);
    const first = (await ask("")).api_id;
    write(source, { "quern.yaml": yaml(", second: true"), "code/other.py": "A = 1\n" });
    expect(server.cli(["deploy", source]).code).toBe(0);
    expect(server.cli(["export", "api", "whole", target("whole")])).toMatchObject({
      code: 0,
      out: `wrote ${target("whole")}/quern.yaml\n`,
      err: `\nquern deploy ${target("whole")}  (deploy it again)\n`,
    });
    expect(server.cli(["deploy", target("whole")]).out).toBe("whole is up to date\n");
    expect(readFileSync(join(target("whole"), "quern.yaml"), "utf8")).toContain("half: 1.50\n");
    // As an older release has saved it; user code has written a file since.
    const db = openSqliteDatabase(join(server.dataDir, "quern.db"));
    await db.run("UPDATE api_versions SET spec_json = json_remove(spec_json, '$.submitted')");
    await db.close();
    expect(server.cli(["export", "api", "whole", first, target("first")]).code).toBe(0);
    expect(readdirSync(join(target("first"), "code")).sort()).toEqual(["other.py", "p.py"]);
    expect(server.cli(["deploy", target("first"), "--wait"]).out).toBe("updating whole (RealtimeAPI)\n");
    expect((await ask("")).api_id).toBe(first);
  });

  it("names what is in the way", async () => {
    expect(server.cli(["export", "api", "whole", target("whole")])).toMatchObject({
      code: 5,
      err: expect.stringContaining("is not empty"),
    });
    const none = "whole has no version no-id; it has ";
    expect(await ask("/export?api_id=no-id")).toMatchObject({
      status: 409,
      message: expect.stringContaining(none),
    });
    // Of the version that is deployed, a file was changed on the server.
    const projects = join(server.dataDir, "projects");
    for (const id of readdirSync(projects))
      if (existsSync(join(projects, id, "code", "other.py")))
        writeFileSync(join(projects, id, "code", "other.py"), "B = 2\n");
    const message = expect.stringContaining("are not on the server as they were deployed");
    expect(await ask("/export")).toMatchObject({ status: 409, message });
  });

  it("gives the configuration another name where the project has a file of its name", () => {
    const source = join(server.dir, "staged");
    write(source, { "staging.yaml": yaml(""), "quern.yaml": yaml(", second: true"), "code/p.py": code });
    write(source, { "code/other.py": "C = 3\n" });
    expect(server.cli(["deploy", join(source, "staging.yaml")]).code).toBe(0);
    expect(server.cli(["export", "api", "whole", target("staged")]).code).toBe(0);
    const again = server.cli(["deploy", join(target("staged"), "quern.exported.yaml")]);
    expect(again.out).toBe("whole is up to date\n");
    expect(server.cli(["delete", "whole", "-f"]).code).toBe(0);
  });
});

describe("a command that names nothing", () => {
  const one = join(server.dir, "one");
  const here = (args: string[]) => server.cli(args, { cwd: one });
  const write = (yaml: string) => writeFileSync(join(one, "quern.yaml"), yaml);
  const solo = "- {name: solo, predictor: {path: predictor.py}}\n";

  it("is about the only API of the configuration in its directory", async () => {
    mkdirSync(one);
    write(solo);
    writeFileSync(join(one, "predictor.py"), OBEDIENT);
    writeFileSync(join(one, "p.json"), '{"id": 7}');
    // Not there yet: what is there is shown.
    expect(here(["get"])).toMatchObject({ code: 0, out: expect.stringContaining("realtime api") });
    expect(here(["deploy", "--wait"]).code).toBe(0);
    const shown = here(["get"]);
    expect(shown.out).toMatch(new RegExp(`endpoint: ${server.baseUrl}/solo\n`));
    expect(shown.err).toBe("API solo, from quern.yaml; `quern get --all` shows everything\n");
    expect(here(["get", "--all"]).out).toContain("echo");
    expect(here(["predict", "p.json"])).toEqual({ code: 0, out: "7\n", err: "API solo, from quern.yaml\n" });
    await server.post("/solo", { do: "print", times: 1 });
    await eventually("it is printed", () => here(["logs", "-q"]).out.includes("y".repeat(999)));
    expect(here(["refresh"]).out).toBe("updating solo\n");
  });

  it("is about everything where a program asks, and never deletes", () => {
    const names = (JSON.parse(here(["get", "-o", "json"]).out) as { name: string }[]).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["echo", "jobs", "solo"]));
    expect(here(["delete", "-f"])).toMatchObject({ code: 2, err: expect.stringContaining("name the API") });
  });

  it("says what to name where the configuration has several, or cannot be read", () => {
    write(`${solo}- {name: other, predictor: {path: predictor.py}}\n`);
    expect(here(["refresh"])).toMatchObject({
      code: 2,
      err: "error: name the API, or an application with -a: quern.yaml has solo, other\n",
    });
    expect(here(["get"]).out).toContain("echo");
    write("- {name: [\n");
    expect(here(["logs"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("quern.yaml cannot be read"),
    });
    expect(server.cli(["delete", "solo", "-y"]).code).toBe(0);
  });
});

describe("quern get -w", () => {
  it("prints again and again until it is interrupted, and `head` ends it without a word", async () => {
    const child = spawn(process.execPath, [join(root, "bin", "quern"), "get", "-w"], {
      env: { ...process.env, QUERN_DATA_DIR: server.dataDir },
    });
    let out = "";
    child.stdout.on("data", (text) => (out += String(text)));
    await eventually("it printed twice", () => out.split("realtime api").length > 2);
    child.kill("SIGINT");
    await eventually("it has ended", () => child.exitCode !== null || child.signalCode !== null);
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
});

describe("the files of a project", () => {
  const packed = (files: Record<string, string>) => {
    const listing =
      "import os\nclass PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload): return sorted(os.path.relpath(os.path.join(d, f)) for d, _, names in os.walk('.') for f in names if '__pycache__' not in d)\n";
    server.deploy({ ...project(OBEDIENT), "predictor.py": listing, ...files });
    return JSON.parse(server.cli(["predict", "echo", "-"], { input: "1" }).out) as string[];
  };

  it("are all but what is left out by default, and .quernignore brings any of it back", () => {
    const files = {
      ".hidden": "",
      "a.pyc": "",
      "node_modules/m.js": "",
      "env/pyvenv.cfg": "",
      "env/bin/python": "",
      "sub/__pycache__/x": "",
      "sub/data.txt": "",
      "quern.yaml.bak": "",
    };
    expect(packed(files)).toEqual(["predictor.py", "quern.yaml.bak", "sub/data.txt"]);
    const back = "!.hidden\n!a.pyc\n!env/\n!quern.yaml\nsub/\n";
    expect(packed({ ...files, ".quernignore": back })).toEqual(
      [
        ".hidden",
        "a.pyc",
        "env/bin/python",
        "env/pyvenv.cfg",
        "predictor.py",
        "quern.yaml",
        "quern.yaml.bak",
      ].sort(),
    );
  });

  it("of a directory that is a virtual environment itself are the project's own", () => {
    expect(packed({ "pyvenv.cfg": "", "bin/python": "", "lib/x.py": "" })).toEqual(["predictor.py"]);
  });

  it("are at most 512 MiB together; the message names the largest", () => {
    const directory = join(server.dir, "large");
    mkdirSync(directory);
    for (const [name, text] of Object.entries(project(OBEDIENT))) writeFileSync(join(directory, name), text);
    writeFileSync(join(directory, "model.bin"), "");
    truncateSync(join(directory, "model.bin"), 600 * 1024 * 1024);
    expect(server.cli(["deploy", directory])).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /the limit is 536870912; the largest files: model\.bin \(629145600 bytes\).*\.quernignore/,
      ),
    });
  });
});

describe("a project of Cortex", () => {
  const CLASS =
    "class PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload): return payload\n";
  const written = (files: Record<string, string | Buffer>) => {
    const directory = join(server.dir, "cortex");
    rmSync(directory, { recursive: true, force: true });
    mkdirSync(directory);
    for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
    return directory;
  };
  const check = (files: Record<string, string | Buffer>) => server.cli(["check", written(files)]);
  const one = (path: string) => `- name: a\n  predictor: {path: ${path}}\n`;
  const GUIDE = /^see the guide docs\/guides\/coming-from-cortex\.md$/m;

  it("is taken with its own names of files, unless it has those of Quern", () => {
    const listing = CLASS.replace("payload\n", "sorted(__import__('os').listdir('.'))\n");
    const files = {
      "cortex.yaml": one("p.py").replace("name: a", "name: echo"),
      "p.py": listing,
      "left-out.bin": "x",
      ".cortexignore": "*.bin\n",
    };
    const directory = written(files);
    const deployed = server.cli(["deploy", "--wait"], { cwd: directory });
    expect([deployed.code, deployed.out]).toEqual([0, "updating echo (RealtimeAPI)\n"]);
    expect(deployed.err.split("\n").slice(0, 2)).toEqual([
      "there is no quern.yaml: cortex.yaml is used instead",
      "there is no .quernignore: .cortexignore is used instead",
    ]);
    const filesOf = () =>
      (JSON.parse(server.cli(["predict", "echo", "-"], { input: "1" }).out) as string[]).filter(
        (name) => name !== "__pycache__",
      );
    expect(filesOf()).toEqual(["p.py"]);
    expect(server.cli(["check", join(directory, "cortex.yaml")]).err).not.toContain("cortex.yaml");
    for (const [name, text] of [
      ["quern.yaml", files["cortex.yaml"]],
      [".quernignore", "nothing\n"],
    ] as const)
      writeFileSync(join(directory, name), text);
    expect(server.cli(["deploy", directory, "--wait"])).toMatchObject({
      code: 0,
      err: expect.not.stringContaining("instead"),
    });
    expect(filesOf()).toEqual(["cortex.yaml", "left-out.bin", "p.py"]);
    server.deploy(project(OBEDIENT));
  });

  const configOf = (...paths: string[]) =>
    paths.map((path, at) => `- name: a${at}\n  predictor: {path: ${path}}\n`).join("");

  it("is told the way out of files that are no source, and of conda packages", () => {
    const { code, err } = check({
      "cortex.yaml": configOf("p.ipynb", "p.pickle", "p.bin", "gone.py"),
      ...{ "p.ipynb": "{}", "p.pickle": "(dp0", "p.bin": Buffer.from([0x80, 4, 0x95, 0]) },
      "conda-packages.txt": "numpy\n",
    });
    expect([code, err]).toEqual([1, expect.stringMatching(GUIDE)]);
    for (const said of [
      "conda-packages.txt: conda packages are not installed: list them in requirements.txt",
      "cortex.yaml:2:15: a0: predictor.path: p.ipynb is a notebook; export it with `jupyter nbconvert",
      "cortex.yaml:4:15: a1: predictor.path: p.pickle is a pickled object; write class PythonPredictor into a .py",
      "a2: predictor.path: p.bin is a pickled object",
      "a3: predictor.path: gone.py: file does not exist",
    ])
      expect(err).toContain(said);
  });

  it("is told the way out of classes and their arguments", () => {
    const { code, err } = check({
      "cortex.yaml": configOf("client.py", "handler.py"),
      "client.py": CLASS.replace("config)", "config, python_client)"),
      "handler.py": CLASS.replace("PythonPredictor", "Handler"),
    });
    expect([code, err]).toEqual([1, expect.stringMatching(GUIDE)]);
    expect(err).toContain(
      '"python_client" does not exist here: load the model in __init__, from a path in config',
    );
    expect(err).toContain(
      "handler.py:1: a1: class PythonPredictor is not defined; rename class Handler to PythonPredictor",
    );
  });

  it("with a mistake of another kind is not sent to the guide", () => {
    const { code, err } = check({ "cortex.yaml": `${one("p.py")}  speed: 3\n`, "p.py": CLASS });
    expect([code, err]).toEqual([1, expect.not.stringMatching(GUIDE)]);
  });
});

describe("quern init", () => {
  it.each(Object.keys(TEMPLATES))("writes the template %s, which passes its check", (template) => {
    const target = join(server.dir, `new-${template}`);
    const { code, out, err } = server.cli(["init", target, "--template", template]);
    expect([code, err]).toEqual([0, expect.stringContaining("quern deploy")]);
    expect(out.trim().split("\n")).toHaveLength(readdirSync(target).length);
    expect(server.cli(["check", join(target, "quern.yaml")])).toMatchObject({ code: 0 });
    if (existsSync(join(target, "job.json")))
      expect(readFileSync(join(target, "job.json"), "utf8")).toContain(`file://${target}/`);
    expect(server.cli(["init", target, "--template", template])).toMatchObject({
      code: 5,
      err: expect.stringContaining("already"),
    });
  });

  it("names the templates that there are", () => {
    expect(server.cli(["init", "x", "--template", "y"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("iris, scikit-learn, files"),
    });
  });
});

describe("quern doctor", () => {
  it("finds all well here, and tells what is wrong with its cure", () => {
    const well = server.cli(["doctor", "-o", "json"]);
    const findings = JSON.parse(well.out) as { check: string; result: string }[];
    expect(findings.map(({ check }) => check)).toEqual([
      "node",
      "python",
      "packages",
      "data directory",
      "database",
      "disk use",
      "open files",
      "server",
      "compute",
      "memory limits",
    ]);
    expect(findings.filter(({ result }) => result === "fail")).toEqual([]);
    expect(findings.find(({ check }) => check === "compute")).toMatchObject({
      result: "warn",
      detail: expect.stringMatching(
        /^999 CPU and 99 TiB to reserve, \d.* free; the machine has \d+ CPU and .*B$/,
      ),
      cure: expect.stringMatching(/become slower; .* are killed: lower --cpus and --memory if/),
    });
    const ill = new TestServer({ QUERN_PYTHON: "/no/python", QUERN_HOST: "http://127.0.0.1:1" });
    const { code, out } = ill.cli(["doctor"]);
    expect(code).toBe(1);
    expect(out).toMatch(/python +fail +\/no\/python does not run/);
    expect(out).toContain("python: install Python 3.9 or later, or name one with --python or QUERN_PYTHON");
    expect(out).toMatch(/server +warn/);
  });

  it("tells which API serves by its last good route, and all others serve", async () => {
    const deployment = {
      "quern.yaml": "- name: ill\n  predictor: {path: p.py}\n- name: well\n  predictor: {path: p.py}\n",
      "p.py":
        "class PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload): return 1\n",
    };
    server.deploy(deployment);
    // As a release that took other settings than this one might have left it.
    const db = openSqliteDatabase(join(server.dataDir, "quern.db"));
    await db.run(
      `UPDATE api_versions SET spec_json = json_set(spec_json, '$.config.networking', json('{"cors_origins":[1]}')) WHERE name = 'ill'`,
    );
    await db.close();
    expect(server.cli(["refresh", "well"]).code).toBe(0);
    await eventually("it is told", () =>
      /^routes +warn +the last good route of ill serves: cors_origins/m.test(server.cli(["doctor"]).out),
    );
    for (const api of ["ill", "well"]) expect((await server.post(`/${api}`, {})).status).toBe(200);
    for (const api of ["ill", "well"]) expect(server.cli(["delete", api, "-y"]).code).toBe(0);
    expect(server.cli(["doctor"]).out).not.toContain("routes");
  });
});

describe("quern completion", () => {
  it("completes verbs, verbs of verbs and options in bash", () => {
    const { out } = server.cli(["completion", "bash"]);
    const complete = (line: string) => {
      const words = line.split(" ");
      const script = `${out}\nCOMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}; _quern; echo "\${COMPREPLY[@]}"`;
      return spawnSync("bash", ["-c", script], { encoding: "utf8", cwd: server.dir })
        .stdout.trim()
        .split(" ");
    };
    expect(complete("quern de")).toEqual(["dev", "deploy", "describe", "delete"]);
    expect(complete("quern job su")).toEqual(["submit"]);
    expect(complete("quern job submit jobs --dry")).toEqual(["--dry-run"]);
    expect(complete("quern keys create --sc")).toEqual(["--scope"]);
    expect(complete("quern -o json ge")).toContain("get");
  });

  it.each(["zsh", "fish"])("is there for %s", (shell) => {
    expect(server.cli(["completion", shell]).out).toContain("submit");
  });
});
