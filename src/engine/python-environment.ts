/**
 * Python environments from `requirements.txt` and `dependencies.sh`: made once per content, shared by all that have the
 * same content, repeated from scratch when one was cut off (decision 4.7).
 */
import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { appendFile, mkdir, open, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { promisify } from "node:util";
import { wallMs } from "../base/clock.ts";

const run = promisify(execFile);
/** Written last: an environment without it is not whole. */
const COMPLETE = ".quern-complete";
const LAST_LINES = 15;
/** Beside the user's `requirements.txt`. */
export const OWN_REQUIREMENTS = ".quern/requirements.txt";

export class EnvironmentError extends Error {}

export interface PythonEnvironmentOptions {
  /** Where environments are kept, a directory for each. */
  root: string;
  /** The interpreter that Quern runs with. */
  python: string;
}

export class PythonEnvironments {
  private readonly options: PythonEnvironmentOptions;
  private readonly underWay = new Map<string, Promise<string>>();
  private interpreter: Promise<InterpreterFacts> | undefined;

  constructor(options: PythonEnvironmentOptions) {
    this.options = options;
  }

  /** The interpreter for a project; installs what it requires, with the installer's own words in `logFile`. */
  async prepare(project: string, logFile: string): Promise<string> {
    const requirements = requirementsOf(project);
    const script = join(project, "dependencies.sh");
    if (requirements.length === 0 && !existsSync(script)) return this.options.python;
    const facts = await this.facts();
    const directory = join(this.options.root, await environmentId(project, requirements, script, facts));
    const underWay = this.underWay.get(directory);
    if (underWay !== undefined) {
      await note(logFile, "the same packages are being installed for another API or job; waiting for them");
      return underWay;
    }
    const work = this.install(directory, project, logFile, facts).finally(() =>
      this.underWay.delete(directory),
    );
    this.underWay.set(directory, work);
    return work;
  }

  private facts(): Promise<InterpreterFacts> {
    this.interpreter ??= interpreterFacts(this.options.python);
    return this.interpreter;
  }

  private async install(
    directory: string,
    project: string,
    logFile: string,
    facts: InterpreterFacts,
  ): Promise<string> {
    const python = join(directory, "bin", "python");
    if (existsSync(join(directory, COMPLETE))) return python;
    await rm(directory, { recursive: true, force: true });
    await mkdir(dirname(directory), { recursive: true });
    const steps = new Steps(project, logFile);
    const script = join(project, "dependencies.sh");
    if (existsSync(script)) await steps.run("dependencies.sh", "bash", ["-e", script]);
    const uv = await onPath("uv");
    if (uv) await steps.run("uv venv", "uv", ["venv", "--quiet", "--python", this.options.python, directory]);
    else await steps.run("venv", this.options.python, ["-m", "venv", directory]);
    await seeInterpretersPackages(python, facts);
    const requirements = requirementsOf(project);
    if (requirements.length > 0) {
      const install = uv
        ? ["uv", "pip", "install", "--python", python]
        : [python, "-m", "pip", "install", "--disable-pip-version-check"];
      const files = requirements.flatMap((file) => ["-r", file]);
      await steps.run("requirements.txt", install[0]!, [...install.slice(1), ...files]);
    }
    await writeFile(join(directory, COMPLETE), "");
    return python;
  }
}

/** The user's, and in a project that Quern made, what Quern itself needs there. */
function requirementsOf(project: string): string[] {
  return [join(project, "requirements.txt"), join(project, OWN_REQUIREMENTS)].filter((file) =>
    existsSync(file),
  );
}

interface InterpreterFacts {
  version: string;
  platform: string;
  sitePackages: string[];
}

async function interpreterFacts(python: string): Promise<InterpreterFacts> {
  const code =
    "import json,site,sys,sysconfig;print(json.dumps({'version':sys.version,'platform':sysconfig.get_platform()," +
    "'sitePackages':list(dict.fromkeys(site.getsitepackages()+[sysconfig.get_paths()['purelib']]))}))";
  const { stdout } = await run(python, ["-c", code]);
  return JSON.parse(stdout) as InterpreterFacts;
}

/**
 * A virtual environment made from within another does not see the other's packages; a `.pth` file does (decision 4.7).
 * What is installed in the new environment comes first.
 */
async function seeInterpretersPackages(python: string, facts: InterpreterFacts): Promise<void> {
  const { stdout } = await run(python, ["-c", "import sysconfig;print(sysconfig.get_paths()['purelib'])"]);
  await writeFile(join(stdout.trim(), "quern-interpreter.pth"), `${facts.sitePackages.join("\n")}\n`);
}

/** What the environment depends on: requirements, the files that they name, the script, interpreter and platform. */
async function environmentId(
  project: string,
  requirements: readonly string[],
  script: string,
  facts: InterpreterFacts,
): Promise<string> {
  const hash = createHash("sha256").update(`${facts.version}\n${facts.platform}\n`);
  const seen = new Set<string>();
  const add = async (file: string): Promise<void> => {
    if (seen.has(file) || !existsSync(file)) return;
    seen.add(file);
    const text = await readFile(file, "utf8");
    hash.update(`${relative(project, file)}\n${text}\n`);
    for (const [, named] of text.matchAll(/^\s*(?:-r|--requirement|-c|--constraint)[ =]?\s*(\S+)/gm))
      await add(resolve(dirname(file), named!));
  };
  for (const file of requirements) await add(file);
  if (existsSync(script)) hash.update(await readFile(script));
  return hash.digest("hex").slice(0, 24);
}

async function onPath(command: string): Promise<boolean> {
  return run(command, ["--version"]).then(
    () => true,
    () => false,
  );
}

async function note(logFile: string, line: string): Promise<void> {
  await mkdir(dirname(logFile), { recursive: true });
  await appendFile(logFile, `${new Date(wallMs()).toISOString()} ${line}\n`);
}

/** Runs the installer's commands with their output in the log; an error has the last lines of it. */
class Steps {
  private readonly project: string;
  private readonly logFile: string;

  constructor(project: string, logFile: string) {
    this.project = project;
    this.logFile = logFile;
  }

  async run(what: string, command: string, args: readonly string[]): Promise<void> {
    await note(this.logFile, `installing: ${what}`);
    const log = await open(this.logFile, "a", 0o600);
    const from = (await log.stat()).size;
    try {
      const code = await new Promise<number | null>((done, reject) => {
        const child = spawn(command, args, { cwd: this.project, stdio: ["ignore", log.fd, log.fd] });
        child.once("error", reject).once("exit", (exitCode) => done(exitCode));
      });
      if (code === 0) return;
    } finally {
      await log.close();
    }
    const output = (await readFile(this.logFile)).subarray(from).toString();
    throw new EnvironmentError(`${what} failed:\n${output.trim().split("\n").slice(-LAST_LINES).join("\n")}`);
  }
}
