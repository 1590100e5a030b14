/**
 * Which Python an API gets for a requested version: found on the server's PATH or by uv, or refused with the available
 * ones.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Pythons } from "../../../src/engine/environments/pythons.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "quern-pythons-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const program = (path: string, text: string) => {
  const file = join(directory, path);
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, `#!/bin/sh\n${text}\n`);
  chmodSync(file, 0o755);
  return file;
};
/** Says that it is of this version, whatever it is asked. */
const python = (path: string, version: string) => {
  const executable = join(directory, path);
  const facts = { executable, version: `${version} (made up)`, platform: "linux", sitePackages: [] };
  return program(path, `echo '${JSON.stringify({ ...facts, virtualEnv: null, hasPip: true })}'`);
};
const pythons = (...directories: string[]) =>
  new Pythons({
    python: python("own/python3", "3.40.2"),
    serverEnv: { PATH: directories.map((name) => join(directory, name)).join(":") },
  });

it("a program that does not run or has another version is skipped", async () => {
  program("shims/python3.47", "echo 'python3.47: command not found' >&2; exit 127");
  python("wrong/python3.47", "3.46.0");
  const right = python("right/python3.47", "3.47.1");
  const all = pythons("nowhere", "shims", "wrong", "right");
  expect((await all.require("3.47")).executable).toBe(right);
});

it("the server's own Python is used if its version matches, even if others are on the PATH", async () => {
  python("right/python3.40", "3.40.9");
  const all = pythons("right");
  expect((await all.require("3.40")).executable).toBe(join(directory, "own/python3"));
});

it("uv is asked for the version if the PATH does not have it", async () => {
  const managed = python("managed/python", "3.48.0");
  program("uv/uv", `[ "$*" = "python find 3.48" ] && echo ${managed} || exit 2`);
  expect((await pythons("uv").require("3.48")).executable).toBe(managed);
});

it("a missing version is refused with the available ones, and found once it is installed", async () => {
  program("shims/python3.47", "exit 127");
  program("shims/python3.39", "exit 127");
  python("some/python3.8", "3.8.1");
  python("some/python3.41", "3.41.0");
  const managed = python("managed/python", "3.48.0");
  const listed = `cpython-3.48.0-linux-x86_64-gnu    ${managed}\ncpython-3.8.1-linux-x86_64-gnu    x`;
  program(
    "uv/uv",
    `case "$*" in "python list --only-installed") printf '${listed}';; "python find 3.48") echo ${managed};; *) exit 2;; esac`,
  );
  const all = pythons("shims", "some", "uv");
  await expect(all.require("3.39")).rejects.toThrow(
    /^this server has no Python 3\.39 .*: this server has 3\.40 \(its own\), 3\.41, 3\.48$/,
  );
  await expect(all.require("3.6")).rejects.toThrow(
    "Python 3.6 is older than 3.9, the oldest that predictors run with; this server has 3.40 (its own), 3.41, 3.48",
  );
  const installed = python("some/python3.39", "3.39.0");
  expect((await all.require("3.39")).executable).toBe(installed);
});

it("a server's Python is refused if it is too old, but not if it does not run", async () => {
  const refusal = (file: string) => new Pythons({ python: file, serverEnv: {} }).refusal();
  expect(await refusal(python("old", "3.8.18"))).toContain(
    "is Python 3.8, and predictors need 3.9 or later; name another with --python",
  );
  expect(await refusal(python("older", "2.7.18"))).toContain("is Python 2.7");
  expect(await refusal(python("new", "3.10.0"))).toBeUndefined();
  expect(await refusal(join(directory, "nowhere"))).toBeUndefined();
});
