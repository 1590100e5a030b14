/** Finds files that Cortex accepts in a project and Quern does not, each with its replacement. */
import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { extname, join } from "node:path";
import { FORMER_GUIDE } from "../../contracts/config/former-keys.ts";
import type { FieldError } from "../../contracts/errors.ts";

/** The first byte of every pickle since protocol 2. No source file begins with it. The second byte is the protocol. */
const PICKLE = 0x80;
const PICKLE_PROTOCOL_MAX = 5;

export function condaErrors(directory: string): FieldError[] {
  const pointer = "conda-packages.txt";
  if (!existsSync(join(directory, pointer))) return [];
  const detail =
    "conda packages are not installed: list them in requirements.txt under pip's names, install what pip does not have in dependencies.sh, and remove the file";
  return [{ pointer, detail, guide: FORMER_GUIDE }];
}

/** Says why a predictor's file is not Python source, and what to do; undefined if it may be source. */
export function notSource(file: string, path: string): string | undefined {
  if (extname(path) === ".ipynb")
    return `${path} is a notebook; export it with \`jupyter nbconvert --to script ${path}\`, and name the .py file`;
  if (/^\.(pickle|pkl)$/.test(extname(path)) || isPickle(file))
    return `${path} is a pickled object; write class PythonPredictor into a .py file, and name that (its __init__ may pickle.load() what the class needs)`;
  return undefined;
}

function isPickle(file: string): boolean {
  const head = Buffer.alloc(2);
  const handle = openSync(file, "r");
  try {
    return readSync(handle, head) === 2 && head[0] === PICKLE && head[1]! <= PICKLE_PROTOCOL_MAX;
  } finally {
    closeSync(handle);
  }
}
