/** Pythons for tests, in `.servers`, with the packages that they need, so that tests install nothing. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root, run } from "./setup.mjs";

const OWN = ["duckdb>=1.3", "numpy>=1.22"];
/** The packages that predictors of tests import. */
const MODELS = ["scikit-learn", "xgboost-cpu", "boto3"];
/** What the guide about outputs reads them with. Apart, because `awscli` wants versions of its own. */
const READERS = ["awscli", "duckdb>=1.3", "pandas", "zstandard"];
/** The last TensorFlow with estimators. */
const TENSORFLOW = "tensorflow-cpu==2.15.*";

/** The interpreter; made where it is missing. */
export function applicationPython() {
  return pythonWith("python", [...OWN, ...MODELS]);
}

/** An environment for the guide about outputs; made where it is missing. */
export function readersPython() {
  return pythonWith("reading", READERS);
}

/** The same with TensorFlow; undefined where there is no package of it for this Python. */
export function tensorflowPython() {
  const probe = "import sys; sys.exit(not (3, 9) <= sys.version_info[:2] <= (3, 11))";
  const { status } = spawnSync(process.env.QUERN_PYTHON ?? "python3", ["-c", probe]);
  return status === 0 ? pythonWith("tensorflow", [...OWN, TENSORFLOW]) : undefined;
}

/** An interpreter in `.servers/NAME` with these packages; made where it is missing. */
export function pythonWith(name, packages) {
  const directory = join(root, ".servers", name);
  const python = join(directory, "bin", "python");
  const mark = join(directory, "complete");
  const list = packages.join(", ");
  const isMade = existsSync(mark);
  if (isMade && readFileSync(mark, "utf8") === list) return python;
  console.error(`installing ${list} ...`);
  // Without its mark it may be half made.
  rmSync(isMade ? mark : directory, { recursive: true, force: true });
  if (!isMade) run(process.env.QUERN_PYTHON ?? "python3", ["-m", "venv", directory]);
  run(python, ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", ...packages]);
  writeFileSync(mark, list);
  return python;
}
