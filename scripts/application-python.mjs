/** A Python for the tests of applications, in `.servers/python`: with the packages that they need, so that tests install nothing. */
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, run } from "./setup.mjs";

const directory = join(root, ".servers", "python");
const PACKAGES = ["duckdb>=1.3", "numpy>=1.22", "scikit-learn"];

/** The interpreter; made where it is missing. */
export function applicationPython() {
  const python = join(directory, "bin", "python");
  if (existsSync(join(directory, "complete"))) return python;
  console.error("installing the packages of applications ...");
  rmSync(directory, { recursive: true, force: true });
  run(process.env.QUERN_PYTHON ?? "python3", ["-m", "venv", directory]);
  run(python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...PACKAGES]);
  writeFileSync(join(directory, "complete"), "");
  return python;
}
