/**
 * Creates one Python environment. It is created empty. `dependencies.sh` runs with it active, and then the requirements
 * are installed. The mark that it is whole comes last: an interrupted creation starts again from scratch.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import { removeTree } from "../../base/files/remove-tree.ts";
import { minorVersionOf } from "../../contracts/config/python-versions.ts";
import { markWhole } from "./environment-files.ts";
import { DEPENDENCIES_SCRIPT, requirementsOf } from "./environment-id.ts";
import { explainInstallFailure } from "./install-failure.ts";
import { endFormerInstaller, forgetInstaller, type Installers, type Steps } from "./installers.ts";
import { activated, type Interpreter, type InterpreterFacts } from "./interpreter.ts";
import { REQUIREMENTS_STEP } from "./step-failed.ts";

const run = promisify(execFile);
const SYNC_MS = 60_000;
/**
 * A copy of the project inside the environment. `dependencies.sh` runs there, and local directories are installed from
 * there. Both write into it, and `-e` installations refer to it.
 */
const SOURCES = "project";

export interface EnvironmentSource {
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

export function interpreterIn(virtualEnv: string): MadeInterpreter {
  const bin = join(virtualEnv, "bin");
  return { python: join(bin, "python"), bin, virtualEnv };
}

interface Creating {
  installers: Installers;
  /** The server's variables. Installers see all of them except Quern's own. */
  serverEnv: NodeJS.ProcessEnv;
  /** Ends the commands. */
  signal: AbortSignal;
}

export async function createEnvironment(
  directory: string,
  installation: EnvironmentSource,
  { installers, serverEnv, signal }: Creating,
): Promise<Interpreter> {
  const { project, logFile, facts } = installation;
  const made = interpreterIn(directory);
  await endFormerInstaller(directory);
  await removeTree(directory);
  await mkdir(dirname(directory), { recursive: true });
  const env = activated(withoutOwn(serverEnv), made);
  const stepsIn = (cwd: string) => installers.steps({ cwd, logFile, env, environment: directory, signal });
  const hasUv = await makeEmpty(made, stepsIn(project), installation);
  await seeInterpretersPackages(made.python, facts);
  const sources = await sourcesOf(installation, directory);
  const steps = stepsIn(sources);
  if (hasScript(sources))
    await steps.run(DEPENDENCIES_SCRIPT, "bash", ["-e", join(sources, DEPENDENCIES_SCRIPT)]);
  await installRequirements({ made, hasUv, steps, sources, facts });
  await syncFileSystem(directory);
  markWhole(directory);
  await forgetInstaller(directory);
  return made;
}

/** Returns the directory from which the project is installed: the project, or its copy in the environment. */
async function sourcesOf(installation: EnvironmentSource, directory: string): Promise<string> {
  const { project, hasLocalDirectories } = installation;
  if (!hasLocalDirectories && !hasScript(project)) return project;
  const sources = join(directory, SOURCES);
  await cp(project, sources, { recursive: true });
  return sources;
}

function hasScript(directory: string): boolean {
  return existsSync(join(directory, DEPENDENCIES_SCRIPT));
}

/** Creates an environment with nothing but pip. Returns whether uv is available. */
async function makeEmpty(
  made: MadeInterpreter,
  steps: Steps,
  { command: python, facts: { hasPip } }: EnvironmentSource,
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
  await steps.run(REQUIREMENTS_STEP, install[0]!, [...install.slice(1), ...files], (output) =>
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
