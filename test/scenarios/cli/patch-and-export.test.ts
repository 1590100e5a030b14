/** The configuration of a deployed API is changed without its files, and a version is exported as a directory. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { archiveOf } from "../../harness/archives.ts";
import { changeSpecs } from "../../harness/databases.ts";
import { TestServer } from "../../harness/server.ts";

const server = new TestServer();
beforeAll(() => server.start());
afterAll(() => server.stop());

describe("quern patch", () => {
  it("changes the configuration of a deployed API, and keeps its files", async () => {
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
      err: expect.stringContaining("app.yaml belongs to an application"),
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

  it("writes a directory that deploys as the same version", async () => {
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
    // As an older release saved it; user code has written a file since.
    const db = server.openDatabase();
    await changeSpecs(db, "%", (spec) => delete spec.submitted);
    await db.close();
    expect(server.cli(["export", "api", "whole", first, target("first")]).code).toBe(0);
    expect(readdirSync(join(target("first"), "code")).sort()).toEqual(["other.py", "p.py"]);
    expect(server.cli(["deploy", target("first"), "--wait"]).out).toBe("updating whole (RealtimeAPI)\n");
    expect((await ask("")).api_id).toBe(first);
  });

  it("names the conflicting file", async () => {
    expect(server.cli(["export", "api", "whole", target("whole")])).toMatchObject({
      code: 5,
      err: expect.stringContaining("is not empty"),
    });
    const none = "whole has no version no-id; it has ";
    expect(await ask("/export?api_id=no-id")).toMatchObject({
      status: 409,
      message: expect.stringContaining(none),
    });
    // A file of the deployed version was changed on the server.
    const projects = join(server.dataDir, "projects");
    for (const id of readdirSync(projects))
      if (existsSync(join(projects, id, "code", "other.py")))
        writeFileSync(join(projects, id, "code", "other.py"), "B = 2\n");
    const message = expect.stringContaining("were changed or removed on the server after the deployment");
    expect(await ask("/export")).toMatchObject({ status: 409, message });
  });

  it("renames the configuration if the project has a file with its name", () => {
    const source = join(server.dir, "staged");
    write(source, { "staging.yaml": yaml(""), "quern.yaml": yaml(", second: true"), "code/p.py": code });
    write(source, { "code/other.py": "C = 3\n" });
    expect(server.cli(["deploy", join(source, "staging.yaml")]).code).toBe(0);
    expect(server.cli(["export", "api", "whole", target("staged")]).code).toBe(0);
    const again = server.cli(["deploy", join(target("staged"), "quern.exported.yaml")]);
    expect(again.out).toBe("whole is up to date\n");
    const { code: deleted, err } = server.cli(["delete", "whole", "-f"]);
    expect(deleted, err).toBe(0);
  });
});

describe("a boolean parameter", () => {
  const files = {
    "quern.yaml": "- {name: fresh, predictor: {path: p.py}}\n",
    "p.py":
      "class PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload): return 1\n",
  };
  const post = async (path: string, body?: Buffer) => {
    const key = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    const response = await server.fetch(path, { method: "POST", headers: { "x-api-key": key }, body });
    return { status: response.status, ...((await response.json()) as { code?: string; message?: string }) };
  };
  const refused = (name: string, text: string) => ({
    status: 400,
    code: "invalid_request",
    message: `${name} must be true or false (got "${text}")`,
  });
  const deploy = (name: string, query: string) =>
    post(
      `/-/deploy?${query}`,
      archiveOf(
        { path: "config.yaml", body: `- {name: ${name}, kind: BatchAPI, predictor: {path: p.py}}` },
        { path: "project/p.py", body: files["p.py"] },
      ),
    );
  const isDeployed = async (name: string) => (await server.api(name)).api_id !== undefined;

  it("accepts every spelling of dry_run, and any other value is refused", async () => {
    for (const text of ["yes", "", "2", "truee"])
      expect(await deploy("tried", `dry_run=${text}`)).toMatchObject(refused("dry_run", text));
    for (const text of ["1", "t", "true", "TRUE"])
      expect(await deploy("tried", `dry_run=${text}`), text).toMatchObject({ status: 200 });
    expect(await isDeployed("tried")).toBe(false);
    for (const text of ["0", "f", "false", "False"]) {
      expect(await deploy(`made-${text.toLowerCase()}`, `dry_run=${text}`), text).toMatchObject({
        status: 200,
      });
      expect(await isDeployed(`made-${text.toLowerCase()}`), text).toBe(true);
    }
  });

  it("accepts every spelling of force, and refreshes nothing for any other value", async () => {
    server.deploy(files);
    const replicas = async () => (await server.api("fresh")).replicas.map(({ pid }) => pid);
    const before = await replicas();
    expect(await post("/-/apis/fresh/refresh?force=maybe")).toMatchObject(refused("force", "maybe"));
    // Another deployment has finished after it, so anything that it had begun would exist by now.
    expect(await deploy("behind", "")).toMatchObject({ status: 200 });
    expect(await replicas()).toEqual(before);
    for (const text of ["0", "f", "False", "1", "t", "True"])
      expect(await post(`/-/apis/fresh/refresh?force=${text}`), text).toMatchObject({ status: 200 });
  });
});
