/** A Python interpreter: facts about it, and the variables that make its commands the ones that user code finds. */
import { execFile } from "node:child_process";
import { delimiter } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** The interpreter that runs user code. */
export interface Interpreter {
  python: string;
  /** The directory of its `python` and `pip`, which is first on user code's PATH; undefined if it is unknown. */
  bin: string | undefined;
  /** `VIRTUAL_ENV`, if the interpreter belongs to a virtual environment. */
  virtualEnv: string | undefined;
}

export interface InterpreterFacts {
  executable: string;
  version: string;
  platform: string;
  sitePackages: string[];
  virtualEnv: string | null;
  hasPip: boolean;
}

/** Runs on any Python, so that even one that is too old can report its version. */
const FACTS = `
import json, site, sys, sysconfig
try:
    from importlib.util import find_spec
except ImportError:
    find_spec = lambda name: None
print(json.dumps({
    "executable": sys.executable,
    "version": sys.version,
    "platform": sysconfig.get_platform(),
    "sitePackages": list(dict.fromkeys(site.getsitepackages() + [sysconfig.get_paths()["purelib"]])),
    "virtualEnv": sys.prefix if sys.prefix != getattr(sys, "base_prefix", sys.prefix) else None,
    "hasPip": find_spec("pip") is not None,
}))
`;

export async function interpreterFacts(
  python: string,
  options: { env?: NodeJS.ProcessEnv; timeout?: number } = {},
): Promise<InterpreterFacts> {
  const { stdout } = await run(python, ["-c", FACTS], options);
  return JSON.parse(stdout) as InterpreterFacts;
}

/** The variables with which this interpreter is active, as `activate` of a virtual environment sets them. */
export function activated<E extends Record<string, string | undefined>>(
  env: E,
  { bin, virtualEnv }: Pick<Interpreter, "bin" | "virtualEnv">,
): E {
  if (bin === undefined) return env;
  const PATH = env.PATH === undefined || env.PATH === "" ? bin : `${bin}${delimiter}${env.PATH}`;
  return { ...env, PATH, ...(virtualEnv === undefined ? {} : { VIRTUAL_ENV: virtualEnv }) };
}
