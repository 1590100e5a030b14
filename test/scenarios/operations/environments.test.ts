/**
 * The Python environments of projects on a server: what user code finds in them, and the errors about missing packages.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { processStartTime } from "../../../src/base/process-identity.ts";
import { environmentsDirectory } from "../../../src/contracts/data-layout.ts";
import { eventually } from "../../harness/eventually.ts";
import { BACKEND, PYPROJECT } from "../../harness/local-package.ts";
import { otherPython, program } from "../../harness/other-python.ts";
import { ECHO, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

/** An environment takes a few seconds, on a machine with much else to do ten times as long. */
const INSTALL_MS = 150_000;
const server = new TestServer();
const shims = join(server.dir, "shims");
const env: { PATH?: string } = {};
beforeAll(async () => {
  mkdirSync(shims);
  program(join(shims, "python3.47"), "echo 'python3.47: command not found' >&2; exit 127");
  env.PATH = `${shims}:${otherPython(server.dir, "3.47")}:${process.env.PATH}`;
  await server.start(env);
}, 60_000);
afterAll(() => server.stop());

const answerOf = async (api: string, isIt: (answer: unknown) => boolean = () => true) => {
  let answer: unknown;
  await eventually(
    `${api} answers`,
    async () => {
      const response = await server.post(`/${api}`, JSON.stringify("word"));
      answer = response.status === 200 ? await response.json() : undefined;
      return answer !== undefined && isIt(answer);
    },
    INSTALL_MS,
    () => `${JSON.stringify(answer)} ${server.cli(["get", api]).out}`,
  );
  return answer;
};
describe("a project with a package of its own (`.`)", () => {
  const PREDICTOR = `
import os, shutil, subprocess, sys, tiny_quern

class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        if payload == "word": return tiny_quern.WORD
        home = os.environ["VIRTUAL_ENV"]
        with open(os.path.join(home, "seen")) as seen:
            in_script = seen.read().split()
        return {
            "prefix": sys.prefix,
            "here": [shutil.which("python"), shutil.which("pip")],
            "in_script": in_script,
            "python": subprocess.check_output(["python", "-c", "import sys; print(sys.prefix)"], text=True).strip(),
            "pip": subprocess.check_output(["pip", "show", "tiny-quern"], text=True),
        }
`;
  const files = (name: string, word: string) => ({
    "quern.yaml": `- {name: ${name}, predictor: {path: predictor.py}}\n`,
    "predictor.py": PREDICTOR,
    "pyproject.toml": PYPROJECT,
    "backend.py": BACKEND,
    "source/tiny_quern.py": `WORD = "${word}"\n`,
    "requirements.txt": ".\n",
    "dependencies.sh": '{ which python; which pip; } > "$VIRTUAL_ENV/seen"\n',
  });
  interface Answer {
    prefix: string;
    here: string[];
    in_script: string[];
    python: string;
    pip: string;
  }

  it("runs its new code after a deployment, beside another project with `.`", async () => {
    server.deploy(files("one", "first"), { wait: false });
    server.deploy(files("two", "other"), { wait: false });
    expect(await answerOf("one")).toBe("first");
    expect(await answerOf("two")).toBe("other");
    // The script and the predictor find the programs of the environment by name.
    const found = (await (await server.post("/one", '"commands"')).json()) as Answer;
    const commands = [`${found.prefix}/bin/python`, `${found.prefix}/bin/pip`];
    expect([found.here, found.in_script, found.python]).toEqual([commands, commands, found.prefix]);
    expect(found.pip).toContain(`Location: ${found.prefix}/`);
    server.deploy(files("one", "second"), { wait: false });
    await answerOf("one", (word) => word === "second");
    expect(await answerOf("two")).toBe("other");
    const environments = readdirSync(join(server.dataDir, "environments"));
    expect(environments.filter((name) => !name.endsWith(".installer"))).toHaveLength(3);
  }, 300_000);

  it("has its environment removed with the last API that needs it, at once if nothing is to be kept", async () => {
    const kept = join(server.dataDir, "environments");
    const ids = () => readdirSync(kept).filter((name) => /^[0-9a-f]{24}$/.test(name));
    expect(ids()).toHaveLength(3);
    const prefixOf = async (name: string) =>
      ((await (await server.post(`/${name}`, '"commands"')).json()) as Answer).prefix;
    const [one, two] = [await prefixOf("one"), await prefixOf("two")];
    await server.stopProcesses();
    await server.start({ ...env, QUERN_KEEP_ENVIRONMENTS: "0" });
    await answerOf("one");
    expect(server.cli(["delete", "one", "-y"]).code).toBe(0);
    // The environment of its first version too.
    await eventually("the environment of the other is left", () => ids().length === 1);
    expect([existsSync(one), existsSync(two)]).toEqual([false, true]);
    expect(await prefixOf("two")).toBe(two);
  }, 300_000);
});

describe("predictor.python", () => {
  const asking = (version: string) =>
    project(
      "import of_the_other, os, shutil\nclass PythonPredictor:\n  def __init__(self, config): pass\n" +
        "  def predict(self, payload): return [of_the_other.VERSION, shutil.which('python'), os.environ['VIRTUAL_ENV']]\n",
      { predictorFields: `, python: "${version}"` },
    );

  it("runs APIs and jobs with that version, and skips a shim of a version that is not installed", async () => {
    server.deploy(asking("3.47"), { wait: false });
    const [version, python, home] = (await answerOf("echo")) as string[];
    expect([version, python]).toEqual(["3.47", join(home!, "bin", "python")]);
    const job = { workers: 1, item_list: { items: [1], batch_size: 1 } };
    const { status } = await server.ended("jobs", await server.submit("jobs", job));
    expect(status).toBe("status_succeeded");
  }, 300_000);

  it("is refused if the server does not have the version, with a list of those it has", () => {
    expect(() => server.deploy(asking("3.48"))).toThrow(
      /quern\.yaml:\d+:\d+: echo: predictor\.python: this server has no Python 3\.48 .*this server has .*\b3\.47\b/,
    );
  });
});

it("a Python older than 3.9 is refused by `quern up`", async () => {
  const other = new TestServer();
  const facts = { executable: "python", version: "3.8.18 (made up)", platform: "linux", sitePackages: [] };
  const old = program(
    join(other.dir, "old-python"),
    `echo '${JSON.stringify({ ...facts, virtualEnv: null, hasPip: true })}'`,
  );
  expect(other.cli(["up", "--listen", "127.0.0.1:0", "--python", old])).toMatchObject({
    code: 1,
    err: expect.stringContaining(
      "is Python 3.8, and predictors need 3.9 or later; name another with --python",
    ),
  });
  expect(existsSync(join(other.dataDir, "quern.db.in-use"))).toBe(false);
  await other.stop();
});

it("a module that is missing in __init__ is named, with a cure", async () => {
  const what =
    "No module named 'no_such_quern': add it to requirements.txt, or to the project if it is a file of yours";
  server.deploy(
    project(
      "class PythonPredictor:\n  def __init__(self, config):\n    import no_such_quern\n  def predict(self, payload): pass\n",
    ),
    { wait: false },
  );
  const job = { workers: 1, item_list: { items: [1], batch_size: 1 } };
  const { reason } = await server.ended("jobs", await server.submit("jobs", job));
  expect(reason!.message).toContain(what);
  await eventually("the API says so too", () => {
    const { message } = JSON.parse(server.cli(["get", "echo", "-o", "json"]).out) as { message?: string };
    return message?.includes(what) === true;
  });
});

describe("an installation that hangs", () => {
  it("ends with its API, and with the controller that started it", async () => {
    const pids = join(server.dir, "pids");
    const started = () => (existsSync(pids) ? readFileSync(pids, "utf8").trim().split("\n").map(Number) : []);
    const isGone = (pid: number) => processStartTime(pid) === undefined;
    const begun = (count: number) => eventually("it begins", () => started().length === count, INSTALL_MS);
    const files = {
      ...project(ECHO),
      "dependencies.sh": `echo $$ >> ${pids}; exec sleep 900\n`,
    };
    server.deploy(files, { wait: false });
    await begun(1);
    const root = environmentsDirectory(server.dataDir);
    const records = () => readdirSync(root).filter((name) => name.endsWith(".installer"));
    const isRecorded = (name: string) => readFileSync(join(root, name), "utf8").includes(`:${started()[0]},`);
    await eventually("it is recorded", () => records().some(isRecorded));
    process.kill(server.child("controller"), "SIGKILL");
    // The next controller begins it again.
    await begun(2);
    expect(isGone(started()[0]!)).toBe(true);
    for (const api of ["echo", "jobs"]) expect(server.cli(["delete", "-y", api]).code).toBe(0);
    await eventually("it ends", () => isGone(started()[1]!));
  }, 400_000);
});
