/**
 * Python environments from `requirements.txt` and `dependencies.sh`: made once per content, shared by all that have the
 * same content, repeated from scratch when one was cut off. An environment is made empty, `dependencies.sh` runs with it
 * active, then the requirements are installed into it.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { promisify } from "node:util";
import type { Service } from "../base/service.ts";
import { environmentIdentity, requirementsOf } from "./environment-id.ts";
import { endFormerInstaller, forgetInstaller, Installers, note, type Steps } from "./installers.ts";
import { activated, type Interpreter, type InterpreterFacts, interpreterFacts } from "./interpreter.ts";

const run = promisify(execFile);
/** Written last: an environment without it is not whole. */
const COMPLETE = ".quern-complete";
const SYNC_MS = 60_000;
/** In the environment, a copy of the project whose directories are installed: building writes into them, `-e` points at them. */
const SOURCES = "project";

export interface PythonEnvironmentOptions {
  /** Where environments are kept, a directory for each. */
  root: string;
  /** The interpreter that Quern runs with. */
  python: string;
  /** The server's variables, of which installers see all but Quern's own. */
  serverEnv: NodeJS.ProcessEnv;
}

export class PythonEnvironments implements Service {
  private readonly options: PythonEnvironmentOptions;
  private readonly underWay = new Map<string, Promise<Interpreter>>();
  private readonly installers = new Installers();
  private interpreter: Promise<InterpreterFacts> | undefined;

  constructor(options: PythonEnvironmentOptions) {
    this.options = { ...options, root: resolve(options.root) };
  }

  /** The interpreter for a project; installs what it requires, with the installer's own words in `logFile`. */
  async prepare(project: string, logFile: string): Promise<Interpreter> {
    const { root, serverEnv } = this.options;
    if (requirementsOf(project).length === 0 && !existsSync(join(project, "dependencies.sh")))
      return this.own();
    const facts = await this.facts();
    const { id, hasLocalDirectories } = await environmentIdentity(project, root, facts, serverEnv);
    const directory = join(root, id);
    const underWay = this.underWay.get(directory);
    if (underWay !== undefined) {
      await note(logFile, "the same packages are being installed for another API or job; waiting for them");
      return underWay;
    }
    const work = this.install(directory, { project, hasLocalDirectories, logFile, facts }).finally(() =>
      this.underWay.delete(directory),
    );
    this.underWay.set(directory, work);
    return work;
  }

  /** Asks the interpreter what it is, so that the first worker need not wait for it. */
  async start(): Promise<void> {
    this.facts().catch(() => {
      // Whoever needs it asks again, and says what is wrong.
    });
  }

  /** Ends what is being installed; whoever waits for it learns nothing any more. */
  async stop(): Promise<void> {
    await this.installers.stop();
  }

  /** The interpreter that Quern runs with: nobody waits for an environment that nothing is installed into. */
  private async own(): Promise<Interpreter> {
    const { python } = this.options;
    const facts = await this.facts().catch(() => undefined);
    return {
      python,
      bin: facts === undefined ? undefined : dirname(facts.executable),
      virtualEnv: facts?.virtualEnv ?? undefined,
    };
  }

  private facts(): Promise<InterpreterFacts> {
    this.interpreter ??= interpreterFacts(this.options.python).catch((error: unknown) => {
      this.interpreter = undefined;
      throw error;
    });
    return this.interpreter;
  }

  private async install(
    directory: string,
    { project, hasLocalDirectories, logFile, facts }: Installation,
  ): Promise<Interpreter> {
    const bin = join(directory, "bin");
    const made = { python: join(bin, "python"), bin, virtualEnv: directory };
    if (existsSync(join(directory, COMPLETE))) return made;
    await endFormerInstaller(directory);
    await rm(directory, { recursive: true, force: true });
    await mkdir(dirname(directory), { recursive: true });
    const env = activated(withoutOwn(this.options.serverEnv), made);
    const stepsIn = (cwd: string) => this.installers.steps({ cwd, logFile, env, environment: directory });
    const steps = stepsIn(project);
    const hasUv = await this.makeEmpty(made, steps, facts);
    await seeInterpretersPackages(made.python, facts);
    const script = join(project, "dependencies.sh");
    if (existsSync(script)) await steps.run("dependencies.sh", "bash", ["-e", script]);
    const sources = hasLocalDirectories ? join(directory, SOURCES) : project;
    if (hasLocalDirectories) await cp(project, sources, { recursive: true });
    await installRequirements(made, hasUv, stepsIn(sources), sources);
    await syncFileSystem(directory);
    await writeFile(join(directory, COMPLETE), "");
    await forgetInstaller(directory);
    return made;
  }

  /** An environment with nothing in it but pip. Whether uv is there. */
  private async makeEmpty(
    made: MadeInterpreter,
    steps: Steps,
    { hasPip }: InterpreterFacts,
  ): Promise<boolean> {
    const { python } = this.options;
    const hasUv = await isOnPath("uv");
    const { virtualEnv } = made;
    if (hasUv) await steps.run("uv venv", "uv", ["venv", "--quiet", "--python", python, virtualEnv]);
    else await steps.run("venv", python, ["-m", "venv", ...(hasPip ? ["--without-pip"] : []), virtualEnv]);
    if (hasPip || hasUv) await addPip(made);
    return hasUv;
  }
}

interface Installation {
  project: string;
  hasLocalDirectories: boolean;
  logFile: string;
  facts: InterpreterFacts;
}

interface MadeInterpreter extends Interpreter {
  bin: string;
  virtualEnv: string;
}

/**
 * The interpreter's pip is seen in the environment, and installs into it when it is run by the environment's Python: a pip of its
 * own would take seconds. Where neither is there, it says so, and the host's is not found behind it.
 */
async function addPip({ python, bin }: MadeInterpreter): Promise<void> {
  const text = `#!/bin/sh\nexec ${shellWord(python)} -m pip "$@"\n`;
  for (const name of ["pip", "pip3"]) await writeFile(join(bin, name), text, { mode: 0o755 });
}

function shellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

async function installRequirements(
  { python }: MadeInterpreter,
  hasUv: boolean,
  steps: Steps,
  project: string,
): Promise<void> {
  const requirements = requirementsOf(project);
  if (requirements.length === 0) return;
  const install = hasUv
    ? ["uv", "pip", "install", "--python", python]
    : [python, "-m", "pip", "install", "--disable-pip-version-check"];
  const files = requirements.flatMap((file) => ["-r", relative(project, file)]);
  await steps.run("requirements.txt", install[0]!, [...install.slice(1), ...files]);
}

/**
 * A virtual environment made from within another does not see the other's packages; a `.pth` file does (decision 4.7).
 * What is installed in the new environment comes first.
 */
async function seeInterpretersPackages(python: string, facts: InterpreterFacts): Promise<void> {
  const { stdout } = await run(python, ["-c", "import sysconfig;print(sysconfig.get_paths()['purelib'])"]);
  await writeFile(join(stdout.trim(), "quern-interpreter.pth"), `${facts.sitePackages.join("\n")}\n`);
}

/** The mark must not outlive a power failure that empties what it speaks of; thousands of files are synced best all at once. */
async function syncFileSystem(directory: string): Promise<void> {
  await run("sync", ["-f", directory], { timeout: SYNC_MS }).catch(() => {
    // A system without it, or a disk that is busy for longer: all will be written in time, where nobody pulls the plug.
  });
}

/** `dependencies.sh` and the build scripts of packages are user code: they see no key and no address of ours. */
function withoutOwn(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("QUERN_")));
}

async function isOnPath(command: string): Promise<boolean> {
  return run(command, ["--version"]).then(
    () => true,
    () => false,
  );
}
