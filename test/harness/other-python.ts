/** A Python that claims another version: a real one with a version of our own, and a module that only it has. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The directory of `python3.47` and the like, for a PATH. */
export function otherPython(directory: string, version: string): string {
  const home = join(directory, "other-python");
  execFileSync("python3", ["-m", "venv", "--without-pip", "--system-site-packages", home]);
  const python = join(home, "bin", "python");
  const purelib = "import sysconfig; print(sysconfig.get_paths()['purelib'])";
  const packages = execFileSync(python, ["-c", purelib], { encoding: "utf8" }).trim();
  writeFileSync(join(packages, "version.pth"), `import sys; sys.version = "${version}.1 (made up)"\n`);
  writeFileSync(join(packages, "of_the_other.py"), `VERSION = "${version}"\n`);
  const commands = join(directory, "other-commands");
  mkdirSync(commands);
  program(join(commands, `python${version}`), `exec ${python} "$@"`);
  return commands;
}

export function program(file: string, text: string): string {
  writeFileSync(file, `#!/bin/sh\n${text}\n`);
  chmodSync(file, 0o755);
  return file;
}
