/** Commands about Quern itself: `init`, `doctor`, `env`, `completion`. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TEMPLATES } from "../../../src/cli/project/init.ts";
import { changeSpecs } from "../../harness/databases.ts";
import { eventually } from "../../harness/eventually.ts";
import { TestServer } from "../../harness/server.ts";

// More than any machine that this runs on.
const server = new TestServer({ QUERN_CPUS: "999", QUERN_MEMORY: "99Ti" });
beforeAll(() => server.start());
afterAll(() => server.stop());

describe("quern env", () => {
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

  it("lists the templates", () => {
    expect(server.cli(["init", "x", "--template", "y"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("iris, scikit-learn, files"),
    });
  });
});

describe("quern doctor", () => {
  it("finds no problem here, and reports each problem with its cure", () => {
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
    // Each takes a block of the disk, whatever it has in it.
    mkdirSync(join(ill.dataDir, "projects"), { recursive: true });
    for (let file = 0; file < 600; file++) writeFileSync(join(ill.dataDir, "projects", `${file}`), "x");
    const { code, out } = ill.cli(["doctor"]);
    expect(code).toBe(1);
    expect(out).toMatch(/python +fail +\/no\/python does not run/);
    expect(out).toMatch(/disk use +ok +[\d.]+ MiB: projects [\d.]+ MiB/);
    expect(out).toContain("python: install Python 3.9 or later, or name one with --python or QUERN_PYTHON");
    expect(out).toMatch(/server +warn/);
  });

  it("reports the API that serves by its last good route, and all others serve", async () => {
    const deployment = {
      "quern.yaml": "- name: ill\n  predictor: {path: p.py}\n- name: well\n  predictor: {path: p.py}\n",
      "p.py":
        "class PythonPredictor:\n  def __init__(self, config): pass\n  def predict(self, payload): return 1\n",
    };
    server.deploy(deployment);
    // As a release with other settings might have left it.
    const db = server.openDatabase();
    await changeSpecs(db, "ill", (spec) => {
      (spec.config as Record<string, unknown>).networking = { cors_origins: [1] };
    });
    await db.close();
    expect(server.cli(["refresh", "well"]).code).toBe(0);
    await eventually("it is told", () =>
      /^routes +warn +ill keeps its last good route: cors_origins/m.test(server.cli(["doctor"]).out),
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

  it.each(["zsh", "fish"])("supports %s", (shell) => {
    expect(server.cli(["completion", shell]).out).toContain("submit");
  });
});
