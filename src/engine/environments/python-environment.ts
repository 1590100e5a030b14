/**
 * Creates Python environments from `requirements.txt` and `dependencies.sh`. There is one per content, which all
 * projects with this content share. An interrupted creation starts again from scratch. An environment is created empty.
 * `dependencies.sh` runs with it active, and then the requirements are installed.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { promisify } from "node:util";
import { wallMs } from "../../base/clock.ts";
import type { Service } from "../../base/service.ts";
import { minorVersionOf } from "../../contracts/config/python-versions.ts";
import {
  deleteTaken,
  environmentsIn,
  forgetUse,
  isWhole,
  markWhole,
  noteNeed,
  noteUse,
  takeAway,
} from "./environment-files.ts";
import { environmentIdentity, requirementsOf } from "./environment-id.ts";
import {
  environmentUser,
  formerUsers,
  neededEnvironments,
  unneededEnvironments,
} from "./environment-uses.ts";
import { explainInstallFailure } from "./install-failure.ts";
import { endFormerInstaller, forgetInstaller, Installers, note, type Steps } from "./installers.ts";
import { activated, type Interpreter, type InterpreterFacts } from "./interpreter.ts";
import { Pythons } from "./pythons.ts";

const run = promisify(execFile);
const SYNC_MS = 60_000;
/**
 * A copy of the project inside the environment. `dependencies.sh` runs there, and local directories are installed from
 * there. Both write into it, and `-e` installations refer to it.
 */
const SOURCES = "project";
const SCRIPT = "dependencies.sh";

export interface PythonEnvironmentOptions {
  /** The parent directory of all environments. */
  root: string;
  /** The interpreter that Quern runs with. */
  python: string;
  /** The server's variables. Installers see all of them except Quern's own. */
  serverEnv: NodeJS.ProcessEnv;
  /** Keeps a growing log within its limits, until the returned function is called. */
  watchLog: (file: string) => () => void;
}

export class PythonEnvironments implements Service {
  private readonly options: PythonEnvironmentOptions;
  private readonly underWay = new Map<string, Promise<Interpreter>>();
  private readonly installers: Installers;
  readonly pythons: Pythons;

  constructor(options: PythonEnvironmentOptions) {
    this.options = { ...options, root: resolve(options.root) };
    this.installers = new Installers(options.watchLog);
    this.pythons = new Pythons(options);
  }

  /**
   * Returns the interpreter for a project, and installs the project's requirements. The installer's output goes to
   * `logFile`. `version` is a version of Python, such as `3.11`. A Python other than the server's own always gets an
   * environment, because `python` in its directory may be a different one.
   */
  async prepare(project: string, logFile: string, version?: string): Promise<Interpreter> {
    const { root, serverEnv } = this.options;
    const chosen = version === undefined ? undefined : await this.pythons.require(version);
    const isOwn = chosen === undefined || chosen === (await this.pythons.own().catch(() => undefined));
    const isEmpty = requirementsOf(project).length === 0 && !existsSync(join(project, SCRIPT));
    if (isEmpty && isOwn) return this.own();
    const facts = chosen ?? (await this.pythons.own());
    const command = isOwn ? this.options.python : facts.executable;
    const { id, hasLocalDirectories } = await environmentIdentity(project, root, facts, serverEnv);
    const directory = join(root, id);
    const user = environmentUser(basename(project), version);
    // Check and use in one step, so that the environment is not removed in between.
    if (!this.underWay.has(directory) && isWhole(directory)) {
      noteUse(directory, user, wallMs());
      return interpreterIn(directory);
    }
    const made = await this.make(directory, { project, hasLocalDirectories, logFile, facts, command });
    noteUse(directory, user, wallMs());
    return made;
  }

  /** Creates the environment in `directory`, or waits if its creation is in progress. */
  private async make(directory: string, installation: Installation): Promise<Interpreter> {
    const { logFile } = installation;
    const underWay = this.underWay.get(directory);
    if (underWay !== undefined) {
      await note(logFile, "the same packages are being installed for another API or job; waiting for them");
      return underWay;
    }
    const work = this.install(directory, installation).finally(() => this.underWay.delete(directory));
    this.underWay.set(directory, work);
    return work;
  }

  /**
   * Removes environments that have not been needed for longer than `keepMs`. `users` need theirs, and `programs` are
   * the interpreters of workers. Both were read at `nowMs`. Returns the ids of the removed environments.
   */
  async sweep(
    { users, programs }: { users: ReadonlySet<string>; programs: readonly string[] },
    { nowMs, keepMs }: { nowMs: number; keepMs: number },
  ): Promise<string[]> {
    const { root } = this.options;
    const environments = environmentsIn(root, nowMs);
    const isRunning = (id: string) => programs.some((program) => program.startsWith(`${join(root, id)}/`));
    const running = environments.map(({ id }) => id).filter(isRunning);
    const needed = neededEnvironments(environments, { users, running: new Set(running) });
    const unneeded = new Set(unneededEnvironments(environments, needed, { nowMs, keepMs }));
    for (const id of needed) noteNeed(join(root, id), nowMs);
    for (const { id, uses } of environments)
      for (const user of formerUsers(uses, users, nowMs - keepMs)) forgetUse(join(root, id), user);
    const gone = environments
      .filter(({ id }) => unneeded.has(id) && !this.underWay.has(join(root, id)))
      .filter((environment) => takeAway(root, environment))
      .map(({ id }) => id);
    for (const id of gone) await forgetInstaller(join(root, id));
    await deleteTaken(root);
    return gone;
  }

  /** Queries the interpreter in advance, so that the first worker does not wait for it. */
  async start(): Promise<void> {
    this.pythons.own().catch(() => {
      // The next caller asks again, and reports the error.
    });
  }

  /** Ends installations in progress. Calls that wait for them never settle. */
  async stop(): Promise<void> {
    await this.installers.stop();
  }

  /** The server's own interpreter: a project without requirements needs no environment. */
  private async own(): Promise<Interpreter> {
    const { python } = this.options;
    const facts = await this.pythons.own().catch(() => undefined);
    return {
      python,
      bin: facts === undefined ? undefined : dirname(facts.executable),
      virtualEnv: facts?.virtualEnv ?? undefined,
    };
  }

  private async install(
    directory: string,
    { project, hasLocalDirectories, logFile, facts, command }: Installation,
  ): Promise<Interpreter> {
    const made = interpreterIn(directory);
    await endFormerInstaller(directory);
    await rm(directory, { recursive: true, force: true });
    await mkdir(dirname(directory), { recursive: true });
    const env = activated(withoutOwn(this.options.serverEnv), made);
    const stepsIn = (cwd: string) => this.installers.steps({ cwd, logFile, env, environment: directory });
    const hasUv = await makeEmpty(made, stepsIn(project), command, facts);
    await seeInterpretersPackages(made.python, facts);
    const hasScript = existsSync(join(project, SCRIPT));
    const sources = hasLocalDirectories || hasScript ? join(directory, SOURCES) : project;
    if (sources !== project) await cp(project, sources, { recursive: true });
    const steps = stepsIn(sources);
    if (hasScript) await steps.run(SCRIPT, "bash", ["-e", join(sources, SCRIPT)]);
    await installRequirements({ made, hasUv, steps, sources, facts });
    await syncFileSystem(directory);
    markWhole(directory);
    await forgetInstaller(directory);
    return made;
  }
}

interface Installation {
  project: string;
  hasLocalDirectories: boolean;
  logFile: string;
  facts: InterpreterFacts;
  /** The command of the interpreter. */
  command: string;
}

interface MadeInterpreter extends Interpreter {
  bin: string;
  virtualEnv: string;
}

function interpreterIn(virtualEnv: string): MadeInterpreter {
  const bin = join(virtualEnv, "bin");
  return { python: join(bin, "python"), bin, virtualEnv };
}

/** Creates an environment with nothing but pip. Returns whether uv is available. */
async function makeEmpty(
  made: MadeInterpreter,
  steps: Steps,
  python: string,
  { hasPip }: InterpreterFacts,
): Promise<boolean> {
  const hasUv = await isOnPath("uv");
  const { virtualEnv } = made;
  if (hasUv) await steps.run("uv venv", "uv", ["venv", "--quiet", "--python", python, virtualEnv]);
  else await steps.run("venv", python, ["-m", "venv", ...(hasPip ? ["--without-pip"] : []), virtualEnv]);
  if (hasPip || hasUv) await addPip(made);
  return hasUv;
}

/**
 * Makes `pip` of the environment run the interpreter's pip, which then installs into the environment. Installing
 * another pip would take seconds. If the interpreter has no pip either, the command says so, and the host's pip on the
 * PATH is not used.
 */
async function addPip({ python, bin }: MadeInterpreter): Promise<void> {
  const text = `#!/bin/sh\nexec ${shellWord(python)} -m pip "$@"\n`;
  for (const name of ["pip", "pip3"]) await writeFile(join(bin, name), text, { mode: 0o755 });
}

function shellWord(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

async function installRequirements({ made, hasUv, steps, sources, facts }: Requiring): Promise<void> {
  const requirements = requirementsOf(sources);
  if (requirements.length === 0) return;
  const install = hasUv
    ? ["uv", "pip", "install", "--python", made.python]
    : [made.python, "-m", "pip", "install", "--disable-pip-version-check"];
  const files = requirements.flatMap((file) => ["-r", relative(sources, file)]);
  await steps.run("requirements.txt", install[0]!, [...install.slice(1), ...files], (output) =>
    explainInstallFailure(output, minorVersionOf(facts)),
  );
}

interface Requiring {
  made: MadeInterpreter;
  hasUv: boolean;
  steps: Steps;
  /** The project, or the copy from which it is installed. */
  sources: string;
  facts: InterpreterFacts;
}

/**
 * Makes the packages of the interpreter visible with a `.pth` file (docs/contract/predictor.md#interpreter-packages). A
 * virtual environment that is created inside another one does not see the other's packages. Packages of the new
 * environment take precedence.
 */
async function seeInterpretersPackages(python: string, facts: InterpreterFacts): Promise<void> {
  const { stdout } = await run(python, ["-c", "import sysconfig;print(sysconfig.get_paths()['purelib'])"]);
  await writeFile(join(stdout.trim(), "quern-interpreter.pth"), `${facts.sitePackages.join("\n")}\n`);
}

/**
 * The complete mark must not survive a power failure that empties the files of the environment. Syncing the whole file
 * system is fastest for thousands of files.
 */
async function syncFileSystem(directory: string): Promise<void> {
  await run("sync", ["-f", directory], { timeout: SYNC_MS }).catch(() => {
    // The system has no such command, or the disk is busy for longer. Without a power failure, everything will be
    // written.
  });
}

/** `dependencies.sh` and the build scripts of packages are user code, and must not see Quern's keys and addresses. */
function withoutOwn(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("QUERN_")));
}

async function isOnPath(command: string): Promise<boolean> {
  return run(command, ["--version"]).then(
    () => true,
    () => false,
  );
}
