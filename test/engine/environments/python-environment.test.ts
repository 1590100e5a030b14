/**
 * Environments from requirements.txt and dependencies.sh, with the real venv and pip
 * (docs/contract/predictor.md#python-environment).
 */
import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { processStartTime } from "../../../src/base/process-identity.ts";
import { PythonEnvironments } from "../../../src/engine/environments/python-environment.ts";
import { localPathOf, namedBy } from "../../../src/engine/environments/requirements.ts";
import { watchLog } from "../../../src/observe/log-watch.ts";
import { eventually } from "../../harness/eventually.ts";
import { BACKEND, PYPROJECT } from "../../harness/local-package.ts";
import { otherPython } from "../../harness/other-python.ts";

const WHEEL = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("tiny_quern.py", "WORD = 'installed'\\n")
    wheel.writestr("tiny_quern-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny-quern\\nVersion: 1.0\\n")
    wheel.writestr("tiny_quern-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr("tiny_quern-1.0.dist-info/RECORD", "")
`;

let directory: string;
let root: string;
let wheel: string;
let log: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "quern-environments-"));
  root = join(directory, "environments");
  wheel = join(directory, "tiny_quern-1.0-py3-none-any.whl");
  log = join(directory, "install.log");
  execFileSync("python3", ["-c", WHEEL, wheel]);
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const environmentsWith = (python: string, serverEnv: NodeJS.ProcessEnv = process.env) =>
  new PythonEnvironments({ root, python, serverEnv, watchLog });
const environments = () => environmentsWith("python3");
/** Made by `files`, its interpreter. */
const made = async (name: string, files: Record<string, string>) =>
  (await environments().prepare(project(name, files), log)).python;
const project = (name: string, files: Record<string, string>) => {
  const path = join(directory, name);
  mkdirSync(path, { recursive: true });
  for (const [file, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, file)), { recursive: true });
    writeFileSync(join(path, file), text);
  }
  return path;
};
const word = (python: string) =>
  execFileSync(python, ["-c", "import tiny_quern; print(tiny_quern.WORD)"], { encoding: "utf8" }).trim();
const installations = () => readFileSync(log, "utf8").match(/installing: requirements\.txt/g)?.length ?? 0;

/** An environment of its own takes a few seconds, on a machine with much else to do ten times as long. */
const VENV_MS = 90_000;

describe("an environment", () => {
  it("is the interpreter itself if nothing is required", async () => {
    const { python, bin } = await environments().prepare(project("plain", {}), log);
    expect(python).toBe("python3");
    // User code finds its commands first, although no environment was made.
    const executable = execFileSync("python3", ["-c", "import sys; print(sys.executable)"], {
      encoding: "utf8",
    });
    expect(bin).toBe(dirname(executable.trim()));
    expect(existsSync(root)).toBe(false);
  });

  it("is shared by simultaneous and later requests for it", async () => {
    const files = { "requirements.txt": `${wheel}\n` };
    const both = environments();
    const second = join(directory, "second.log");
    const [one, other] = await Promise.all([
      both.prepare(project("one", files), log),
      both.prepare(project("other", files), second),
    ]);
    expect(one).toEqual(other);
    expect(word(one.python)).toBe("installed");
    const logs = readFileSync(log, "utf8") + readFileSync(second, "utf8");
    expect(logs.match(/installing: requirements\.txt/g)).toHaveLength(1);
    expect(logs).toContain("being installed for another API or job");
    const later = join(directory, "later.log");
    expect(await environments().prepare(project("later", files), later)).toEqual(one);
    expect(existsSync(later)).toBe(false);
  }, 120_000);

  it("is made anew if its installation was interrupted", async () => {
    const files = { "requirements.txt": `${wheel}\n` };
    const python = await made("one", files);
    const [id] = readdirSync(root);
    rmSync(join(root, id!, ".quern-complete"));
    rmSync(join(root, id!, "lib"), { recursive: true });
    expect(await made("one", files)).toBe(python);
    expect(word(python)).toBe("installed");
    expect(installations()).toBe(2);
  }, 120_000);

  it("is a new one if a file that the requirements name changes", async () => {
    const files = { "requirements.txt": "-r more.txt\n", "more.txt": "" };
    const before = await made("one", files);
    const after = await made("one", { ...files, "more.txt": `${wheel}\n` });
    expect(after).not.toBe(before);
    expect(word(after)).toBe("installed");
  }, 120_000);

  it("runs dependencies.sh before the requirements, stops if it fails, and reports its last lines", async () => {
    const script = `echo looking for a library\nfalse\necho never\n`;
    const failing = environments().prepare(project("one", { "dependencies.sh": script }), log);
    await expect(failing).rejects.toThrow(/dependencies\.sh failed:\nlooking for a library$/);
    const flag = join(directory, "flag");
    const fine = { "dependencies.sh": `touch ${flag}\n`, "requirements.txt": `${wheel}\n` };
    expect(word(await made("two", fine))).toBe("installed");
    expect(existsSync(flag)).toBe(true);
  }, 120_000);

  it("sees the packages of the interpreter that Quern runs with", async () => {
    const own = join(directory, "venv");
    execFileSync("python3", ["-m", "venv", own]);
    const purelib = "import sysconfig; print(sysconfig.get_paths()['purelib'])";
    const packages = execFileSync(join(own, "bin", "python"), ["-c", purelib], { encoding: "utf8" }).trim();
    writeFileSync(join(packages, "tiny_quern.py"), "WORD = 'of the interpreter'\n");
    const ofVenv = environmentsWith(join(own, "bin", "python"));
    const { python } = await ofVenv.prepare(project("one", { "requirements.txt": "" }), log);
    expect(word(python)).toBe("of the interpreter");
    // Another interpreter has another environment, though its version is the same.
    expect(await made("one", { "requirements.txt": "" })).not.toBe(python);
  }, 120_000);

  it("is active in dependencies.sh: python and pip are its own, and Quern's variables are hidden", async () => {
    const seen = join(directory, "seen");
    const script = `{ which python; which pip; echo "$VIRTUAL_ENV"; echo "key:$QUERN_API_KEY"; echo "$INDEX"; } > ${seen}\npip install --no-index ${wheel}\n`;
    const serverEnv = { ...process.env, QUERN_API_KEY: "secret", INDEX: "of the operator" };
    const env = environmentsWith("python3", serverEnv);
    const interpreter = await env.prepare(project("one", { "dependencies.sh": script }), log);
    const home = dirname(dirname(interpreter.python));
    expect(readFileSync(seen, "utf8").trim().split("\n")).toEqual([
      join(home, "bin", "python"),
      join(home, "bin", "pip"),
      home,
      "key:",
      "of the operator",
    ]);
    expect(word(interpreter.python)).toBe("installed");
    expect(() => execFileSync("python3", ["-c", "import tiny_quern"], { stdio: "ignore" })).toThrow();
    expect(interpreter).toMatchObject({ bin: join(home, "bin"), virtualEnv: home });
  }, 120_000);

  it("runs dependencies.sh in a copy of the project, and does not change or need the deployed one", async () => {
    const lib = {
      "lib/pyproject.toml": PYPROJECT,
      "lib/backend.py": BACKEND,
      "lib/tiny_quern.py": "WORD = 1\n",
    };
    const script = "echo made > beside.txt\npip install --no-index -e ./lib\n";
    const python = await made("one", { ...lib, "dependencies.sh": script });
    expect(readdirSync(join(directory, "one")).sort()).toEqual(["dependencies.sh", "lib"]);
    rmSync(join(directory, "one"), { recursive: true });
    expect(word(python)).toBe("1");
  }, 120_000);

  it("reports the requirement that cannot be installed, and that another Python can be chosen", async () => {
    const packages = join(directory, "packages");
    mkdirSync(packages);
    writeFileSync(join(packages, "older_quern-1.0-cp27-cp27mu-manylinux1_x86_64.whl"), readFileSync(wheel));
    const broken = { "pyproject.toml": PYPROJECT, "backend.py": "raise SystemExit('no compiler')\n" };
    const name = "broken_quern-2.0";
    project(name, { ...broken, "PKG-INFO": "Metadata-Version: 2.1\nName: broken-quern\nVersion: 2.0\n" });
    execFileSync("tar", ["-czf", join(packages, `${name}.tar.gz`), "-C", directory, name]);
    const from = `--no-index\n--find-links ${packages}\n`;
    const failure = (project_: string, requirement: string) =>
      made(project_, { "requirements.txt": `${from}${requirement}\n` }).catch(
        (error: Error) => error.message,
      );
    const version = execFileSync("python3", ["-c", "import sys; print('%d.%d' % sys.version_info[:2])"], {
      encoding: "utf8",
    }).trim();
    expect(await failure("one", "older-quern==1.0")).toContain(
      `requirements.txt failed: there is no older-quern==1.0 for Python ${version}; require another version of it, or use predictor.python to choose a Python that it has builds for\n`,
    );
    // If it comes from an index, the error names the requirement as it was written (install-failure.test.ts).
    expect(await failure("two", "broken-quern==2.0")).toMatch(
      /requirements\.txt failed: building \S+broken_quern-2\.0\.tar\.gz for Python \S+ failed; .* predictor\.python.*\n/,
    );
  }, 120_000);

  it("uses the requested Python, even if nothing is required", async () => {
    const PATH = `${otherPython(directory, "3.47")}:${process.env.PATH}`;
    const other = environmentsWith("python3", { ...process.env, PATH });
    const { python, virtualEnv } = await other.prepare(project("one", {}), log, "3.47");
    expect(python).toBe(join(virtualEnv!, "bin", "python"));
    const version = execFileSync(python, ["-c", "import of_the_other; print(of_the_other.VERSION)"]);
    expect(version.toString()).toBe("3.47\n");
    await expect(other.prepare(project("one", {}), log, "3.48")).rejects.toThrow("has no Python 3.48");
  }, 120_000);

  it("is never installed twice at once: an installation ends with the server or before the next one", async () => {
    const pids = join(directory, "pids");
    // The first one that runs stays.
    const script = `echo $$ >> ${pids}\n[ $(wc -l < ${pids}) -gt 2 ] || exec sleep 300\n`;
    const files = { "dependencies.sh": script };
    const started = () => (existsSync(pids) ? readFileSync(pids, "utf8").trim().split("\n").map(Number) : []);
    const isGone = (pid: number) => processStartTime(pid) === undefined;
    const stopped = environments();
    void stopped.prepare(project("one", files), log);
    await eventually("it is being made", () => started().length === 1, VENV_MS);
    await stopped.stop();
    expect(isGone(started()[0]!)).toBe(true);
    // As if this server were killed: its installer stays.
    const killed = environments().prepare(project("one", files), log);
    killed.catch(() => {
      // Its installer was ended.
    });
    await eventually("it is being made", () => started().length === 2, VENV_MS);
    await environments().prepare(project("one", files), log);
    expect(isGone(started()[1]!)).toBe(true);
    expect(readdirSync(root).filter((name) => name.endsWith(".installer"))).toEqual([]);
  }, 240_000);

  describe("whose installation hangs", () => {
    const pids = () => join(directory, "pids");
    const started = () =>
      existsSync(pids()) ? readFileSync(pids(), "utf8").trim().split("\n").map(Number) : [];
    const isGone = (pid: number) => processStartTime(pid) === undefined;
    /** It hangs until a third one runs. */
    const hanging = () => ({
      "dependencies.sh": `echo $$ >> ${pids()}\n[ $(wc -l < ${pids()}) -gt 2 ] || exec sleep 300\n`,
    });
    const begun = (count: number) =>
      eventually("it is being made", () => started().length === count, VENV_MS);

    it("is given up once none of its users needs it, and made anew for the next one", async () => {
      const all = environments();
      const one = all.prepare(project("one", hanging()), log).catch((error: Error) => error.message);
      await begun(1);
      const two = all.prepare(project("two", hanging()), log).catch((error: Error) => error.message);
      await eventually("both wait", () => readFileSync(log, "utf8").includes("for another API or job"));
      // Who needs one was read before the second one asked.
      all.endUnneeded(new Set(), 0);
      expect(["one", "two", "three"].map((user) => (all.installingMs(user) ?? 0) > 0)).toEqual([
        true,
        true,
        false,
      ]);
      all.endUnneeded(new Set(["two", "three"]), performance.now());
      expect(isGone(started()[0]!)).toBe(false);
      all.endUnneeded(new Set(["three"]), performance.now());
      const next = all.prepare(project("four", hanging()), log).catch(() => {});
      expect(await Promise.all([one, two])).toEqual(Array(2).fill("nothing needs these packages any more"));
      expect(isGone(started()[0]!)).toBe(true);
      await begun(2);
      all.endUnneeded(new Set(), performance.now());
      await next;
      expect(isGone(started()[1]!)).toBe(true);
      expect(all.areInstalling).toBe(false);
    }, 240_000);

    it("is given up at the next start if the server was killed, but not by a server on a copy", async () => {
      const killed = environments().prepare(project("one", hanging()), log);
      killed.catch(() => {
        // Its installer was ended.
      });
      await begun(1);
      const copy = join(directory, "copy");
      const records = () => readdirSync(root).filter((name) => name.endsWith(".installer"));
      const isRecorded = (name: string) =>
        readFileSync(join(root, name), "utf8").includes(`:${started()[0]},`);
      await eventually("it is recorded", () => records().some(isRecorded));
      cpSync(root, copy, { recursive: true });
      await new PythonEnvironments({
        root: copy,
        python: "python3",
        serverEnv: process.env,
        watchLog,
      }).start();
      expect(isGone(started()[0]!)).toBe(false);
      await environments().start();
      await eventually("it ends", () => isGone(started()[0]!));
    }, 240_000);
  });
});

describe("local requirements", () => {
  /** A package with a build of its own: nothing is downloaded, and the build writes into the directory as setuptools does. */
  const library = (text: string) => ({
    "lib/pyproject.toml": PYPROJECT,
    "lib/backend.py": BACKEND,
    "lib/tiny_quern.py": `WORD = ${JSON.stringify(text)}\n`,
  });

  it.each([["./lib"], ["-e ./lib"]])(
    "%s: changed code gets another environment, unchanged code the same",
    async (requirement) => {
      const files = (text: string) => ({ ...library(text), "requirements.txt": `${requirement}\n` });
      const one = await made("one", files("first"));
      const two = await made("two", files("second"));
      expect([word(one), word(two)]).toEqual(["first", "second"]);
      // Neither the build nor the running code changes the deployed files.
      writeFileSync(join(directory, "one", "lib", "cache.bin"), "written by user code");
      expect(await made("one", files("first"))).toBe(one);
      expect(existsSync(join(directory, "one", "lib", "build"))).toBe(false);
      expect(await made("three", { ...files("first"), "predictor.py": "" })).toBe(one);
      // It does not depend on the project that it was made for.
      rmSync(join(directory, "one"), { recursive: true });
      expect(word(one)).toBe("first");
    },
    120_000,
  );

  it("are found in every form that pip accepts", () => {
    const named = namedBy(
      `-r a.txt # more\n--requirement=b.txt\n-cc.txt\n--constraint "d e.txt"\n.\n./x.whl ; python_version > "3"\n-e .[dev]\n` +
        `--editable=./lib#egg=lib\n-e./close\nlib/ --hash=sha256:0\nx.whl\nthing @ file:///abs/thing\n-f wheels/\n./with \\\nspace\n` +
        `\${WHEELS}/y.whl\nnumpy==1.26\ntorch>=2 # not ./this\nrequests[socks]\n`,
      { WHEELS: "/wheels" },
    );
    expect(named.files).toEqual(["a.txt", "b.txt", "c.txt", "d e.txt"]);
    for (const path of [
      ".",
      "./x.whl",
      "./lib",
      "./close",
      "lib/",
      "x.whl",
      "file:///abs/thing",
      "wheels/",
      "./with space",
      "/wheels/y.whl",
    ])
      expect(named.candidates).toContain(path);
    expect(named.candidates.join(" ")).not.toMatch(/numpy|torch|requests|this/);
    expect(localPathOf("file:///a%20b", "/p")).toBe("/a b");
    expect(localPathOf("https://host/x.whl", "/p")).toBeUndefined();
    expect(localPathOf("../x.whl", "/p/q")).toBe("/p/x.whl");
  });

  it("are compared by content if they are files: a wheel, a constraint, a file named in a nested file", async () => {
    const bytes = readFileSync(wheel);
    const name = "tiny_quern-1.0-py3-none-any.whl";
    const files = { "requirements.txt": "-r nested/more.txt\n", "nested/more.txt": `./${name}\n` };
    project("one", files);
    writeFileSync(join(directory, "one", name), bytes);
    const one = await made("one", files);
    project("two", files);
    execFileSync("python3", ["-c", WHEEL.replace("installed", "another"), join(directory, "two", name)]);
    const two = await made("two", files);
    expect([word(one), word(two)]).toEqual(["installed", "another"]);
  }, 120_000);
});
