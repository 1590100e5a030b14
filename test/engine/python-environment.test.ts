/** Environments from requirements.txt and dependencies.sh, with the real venv and pip (decision 4.7). */
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PythonEnvironments } from "../../src/engine/python-environment.ts";

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

const environments = () => new PythonEnvironments({ root, python: "python3" });
const project = (name: string, files: Record<string, string>) => {
  const path = join(directory, name);
  mkdirSync(path, { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(join(path, file), text);
  return path;
};
const word = (python: string) =>
  execFileSync(python, ["-c", "import tiny_quern; print(tiny_quern.WORD)"], { encoding: "utf8" }).trim();
const installations = () => readFileSync(log, "utf8").match(/installing: requirements\.txt/g)?.length ?? 0;

describe("an environment", () => {
  it("is the interpreter itself where nothing is required", async () => {
    expect(await environments().prepare(project("plain", {}), log)).toBe("python3");
    expect(existsSync(root)).toBe(false);
  });

  it("is shared by two that ask for it at once, and by whoever asks later", async () => {
    const files = { "requirements.txt": `${wheel}\n` };
    const both = environments();
    const second = join(directory, "second.log");
    const [one, other] = await Promise.all([
      both.prepare(project("one", files), log),
      both.prepare(project("other", files), second),
    ]);
    expect(one).toBe(other);
    expect(word(one)).toBe("installed");
    const logs = readFileSync(log, "utf8") + readFileSync(second, "utf8");
    expect(logs.match(/installing: requirements\.txt/g)).toHaveLength(1);
    expect(logs).toContain("being installed for another API or job");
    const later = join(directory, "later.log");
    expect(await environments().prepare(project("later", files), later)).toBe(one);
    expect(existsSync(later)).toBe(false);
  }, 120_000);

  it("that was cut off is made anew, never half used", async () => {
    const files = { "requirements.txt": `${wheel}\n` };
    const python = await environments().prepare(project("one", files), log);
    const [id] = readdirSync(root);
    rmSync(join(root, id!, ".quern-complete"));
    rmSync(join(root, id!, "lib"), { recursive: true });
    expect(await environments().prepare(project("one", files), log)).toBe(python);
    expect(word(python)).toBe("installed");
    expect(installations()).toBe(2);
  }, 120_000);

  it("is another one when a file changes that the requirements name", async () => {
    const files = { "requirements.txt": "-r more.txt\n", "more.txt": "" };
    const before = await environments().prepare(project("one", files), log);
    const after = await environments().prepare(project("one", { ...files, "more.txt": `${wheel}\n` }), log);
    expect(after).not.toBe(before);
    expect(word(after)).toBe("installed");
  }, 120_000);

  it("runs dependencies.sh first, stops where it fails, and gives its last lines", async () => {
    const script = `echo looking for a library\nfalse\necho never\n`;
    const failing = environments().prepare(project("one", { "dependencies.sh": script }), log);
    await expect(failing).rejects.toThrow(/dependencies\.sh failed:\nlooking for a library$/);
    const flag = join(directory, "flag");
    const fine = { "dependencies.sh": `touch ${flag}\n`, "requirements.txt": `${wheel}\n` };
    expect(word(await environments().prepare(project("two", fine), log))).toBe("installed");
    expect(existsSync(flag)).toBe(true);
  }, 120_000);

  it("sees the packages of the interpreter that Quern runs with", async () => {
    const own = join(directory, "venv");
    execFileSync("python3", ["-m", "venv", own]);
    const purelib = "import sysconfig; print(sysconfig.get_paths()['purelib'])";
    const packages = execFileSync(join(own, "bin", "python"), ["-c", purelib], { encoding: "utf8" }).trim();
    writeFileSync(join(packages, "tiny_quern.py"), "WORD = 'of the interpreter'\n");
    const made = new PythonEnvironments({ root, python: join(own, "bin", "python") });
    expect(word(await made.prepare(project("one", { "requirements.txt": "" }), log))).toBe(
      "of the interpreter",
    );
  }, 120_000);
});
