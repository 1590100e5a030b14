/**
 * ruff (format, lint) and mypy (types) for the Python of this repository. pyproject.toml says what they check.
 * They are in `.servers/python-tools`, installed when they are first used. These releases are the same everywhere.
 */
import { join } from "node:path";
import { pythonWith } from "./application-python.mjs";
import { run } from "./setup.mjs";

/** The last line of mypy that checks for Python 3.9, which the runtime supports. */
const MYPY = "mypy==1.19.1";
const RUFF = "ruff==0.17.6";

const tool = (name) => join(pythonWith("python-tools", [RUFF, MYPY]), "..", name);

/** Ends this process with the errors if there are any. */
export function checkPython() {
  run(tool("ruff"), ["format", "--check", "--quiet"]);
  run(tool("ruff"), ["check", "--quiet"]);
  run(tool("mypy"), ["--no-error-summary"]);
}

export function formatPython() {
  run(tool("ruff"), ["check", "--fix", "--quiet"]);
  run(tool("ruff"), ["format", "--quiet"]);
}
