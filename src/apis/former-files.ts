/** Files of a project that Cortex takes and Quern does not, each with the way out. */
import { closeSync, existsSync, openSync, readSync } from "node:fs";
import { extname, join } from "node:path";
import type { FieldError } from "../contracts/errors.ts";
import { FORMER_GUIDE } from "../contracts/former-keys.ts";

/** The first byte of every pickle since protocol 2, which no source file has. The second is the protocol. */
const PICKLE = 0x80;
const PICKLE_PROTOCOL_MAX = 5;

export function condaErrors(directory: string): FieldError[] {
  const pointer = "conda-packages.txt";
  if (!existsSync(join(directory, pointer))) return [];
  const detail =
    "conda packages are not installed: list them in requirements.txt under pip's names, install what pip does not have in dependencies.sh, and remove the file";
  return [{ pointer, detail, guide: FORMER_GUIDE }];
}

/** Why a predictor's file is no source file of Python, with the way out; undefined where it may be one. */
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
