/** A Python interpreter: what is asked of it once, and how its commands become those that user code finds. */
import { execFile } from "node:child_process";
import { delimiter } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** What runs user code. */
export interface Interpreter {
  python: string;
  /** The directory with its `python` and `pip`, the first on user code's PATH; undefined where it could not be found out. */
  bin: string | undefined;
  /** `VIRTUAL_ENV`, where it is of a virtual environment. */
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

const FACTS = `
import importlib.util, json, site, sys, sysconfig
print(json.dumps({
    "executable": sys.executable,
    "version": sys.version,
    "platform": sysconfig.get_platform(),
    "sitePackages": list(dict.fromkeys(site.getsitepackages() + [sysconfig.get_paths()["purelib"]])),
    "virtualEnv": sys.prefix if sys.prefix != sys.base_prefix else None,
    "hasPip": importlib.util.find_spec("pip") is not None,
}))
`;

export async function interpreterFacts(python: string): Promise<InterpreterFacts> {
  const { stdout } = await run(python, ["-c", FACTS]);
  return JSON.parse(stdout) as InterpreterFacts;
}

/** The variables of a process in which this interpreter is active, as `activate` of a virtual environment sets them. */
export function activated<E extends Record<string, string | undefined>>(
  env: E,
  { bin, virtualEnv }: Pick<Interpreter, "bin" | "virtualEnv">,
): E {
  if (bin === undefined) return env;
  const PATH = env.PATH === undefined || env.PATH === "" ? bin : `${bin}${delimiter}${env.PATH}`;
  return { ...env, PATH, ...(virtualEnv === undefined ? {} : { VIRTUAL_ENV: virtualEnv }) };
}
