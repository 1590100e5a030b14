/**
 * The files that a deployment takes from a directory, also from a project of Cortex, and the configuration that a
 * command uses.
 */
import { mkdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

const server = new TestServer();
beforeAll(async () => {
  await server.start();
  server.deploy(project(OBEDIENT));
});
afterAll(() => server.stop());

describe("a command that names nothing", () => {
  const one = join(server.dir, "one");
  const here = (args: string[]) => server.cli(args, { cwd: one });
  const write = (yaml: string) => writeFileSync(join(one, "quern.yaml"), yaml);
  const solo = "- {name: solo, predictor: {path: predictor.py}}\n";

  it("uses the only API of the configuration in its directory", async () => {
    mkdirSync(one);
    write(solo);
    writeFileSync(join(one, "predictor.py"), OBEDIENT);
    writeFileSync(join(one, "p.json"), '{"id": 7}');
    // The API is not deployed yet, so `get` shows the deployed ones.
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

  it("applies to everything for a program, and never deletes", () => {
    const names = (JSON.parse(here(["get", "-o", "json"]).out) as { name: string }[]).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["echo", "jobs", "solo"]));
    expect(here(["delete", "-f"])).toMatchObject({ code: 2, err: expect.stringContaining("name the API") });
  });

  it("gets an error with a cure if the configuration has several APIs or cannot be read", () => {
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

describe("the files of a project", () => {
  const packed = (files: Record<string, string>) => {
    const listing =
      "import os\nclass PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload): return sorted(os.path.relpath(os.path.join(d, f)) for d, _, names in os.walk('.') for f in names if '__pycache__' not in d)\n";
    server.deploy({ ...project(OBEDIENT), "predictor.py": listing, ...files });
    return JSON.parse(server.cli(["predict", "echo", "-"], { input: "1" }).out) as string[];
  };

  it("are all files except those left out by default, and .quernignore includes any of them again", () => {
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

  it("keep their names, whatever characters they contain", () => {
    const names = [" ", "-rf", "@data/x", "@notes.tar", "a:b", "line\nbreak", "ünï"];
    const files = Object.fromEntries(names.map((name) => [name, name]));
    expect(packed(files)).toEqual([...names, "predictor.py"].sort());
    const again = join(server.dir, "exported");
    expect(server.cli(["export", "api", "echo", again]).code).toBe(0);
    expect(server.cli(["deploy", again]).out).toBe("echo is up to date\n");
  });

  it("are included even if the directory itself is a virtual environment", () => {
    expect(packed({ "pyvenv.cfg": "", "bin/python": "", "lib/x.py": "" })).toEqual(["predictor.py"]);
  });

  it("have at most 512 MiB in total; the error names the largest", () => {
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

  it("is accepted with its own file names, unless it has those of Quern", () => {
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

  it("gets a cure for files that are not source code, and for conda packages", () => {
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

  it("gets a cure for classes and their arguments", () => {
    const { code, err } = check({
      "cortex.yaml": configOf("client.py", "handler.py"),
      "client.py": CLASS.replace("config)", "config, python_client)"),
      "handler.py": CLASS.replace("PythonPredictor", "Handler"),
    });
    expect([code, err]).toEqual([1, expect.stringMatching(GUIDE)]);
    expect(err).toContain(
      '"python_client" is not supported: load the model in __init__, from a path in config',
    );
    expect(err).toContain(
      "handler.py:1: a1: class PythonPredictor is not defined; rename class Handler to PythonPredictor",
    );
  });

  it("gets no link to the guide for an unrelated mistake", () => {
    const { code, err } = check({ "cortex.yaml": `${one("p.py")}  speed: 3\n`, "p.py": CLASS });
    expect([code, err]).toEqual([1, expect.not.stringMatching(GUIDE)]);
  });
});
