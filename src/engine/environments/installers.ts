/**
 * Runs the commands that create an environment, one after the other, with their output in a log. They end when the
 * server stops, or when nothing needs the environment any more. Commands that a killed server left running are ended at
 * the next start.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { realpathSync, writeFileSync } from "node:fs";
import { appendFile, mkdir, open, readdir, readFile, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { delay, wallMs } from "../../base/clock.ts";
import { isSameProcess, processStartTime, signalGroup } from "../../base/process-identity.ts";
import { stepFailed } from "./step-failed.ts";

const POLL_MS = 20;

interface StepsOptions {
  cwd: string;
  logFile: string;
  env: NodeJS.ProcessEnv;
  /** The directory of the environment that the commands create. */
  environment: string;
  /** Ends them, also the one that runs. */
  signal: AbortSignal;
}

export class Installers {
  private readonly running = new Set<ChildProcess>();
  private readonly watchLog: (file: string) => () => void;
  private isStopped = false;

  /** `watchLog` keeps a growing log within its limits, until the returned function is called. */
  constructor(watchLog: (file: string) => () => void) {
    this.watchLog = watchLog;
  }

  steps(options: StepsOptions): Steps {
    return new Steps({ ...options, watchLog: this.watchLog }, (command, args, log) =>
      this.run(options, command, args, log),
    );
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    const gone = [...this.running].map((child) => new Promise((done) => child.once("exit", done)));
    for (const child of this.running) signalGroup(child.pid!, "SIGKILL");
    await Promise.all(gone);
  }

  /**
   * Returns the exit code. It never settles once the server stops, because an interrupted step is not the project's
   * error.
   */
  private run(
    { cwd, env, environment, signal }: StepsOptions,
    command: string,
    args: readonly string[],
    log: number,
  ): Promise<number | null> {
    if (this.isStopped) return new Promise(() => {});
    signal.throwIfAborted();
    return new Promise((done, reject) => {
      const child = spawn(command, args, { cwd, env, stdio: ["ignore", log, log], detached: true });
      const end = () => {
        if (child.pid !== undefined) signalGroup(child.pid, "SIGKILL");
      };
      signal.addEventListener("abort", end);
      child.once("error", reject);
      if (child.pid !== undefined) {
        this.running.add(child);
        recordInstaller(environment, child.pid);
      }
      child.once("exit", (code) => {
        signal.removeEventListener("abort", end);
        this.running.delete(child);
        if (!this.isStopped) done(code);
      });
    });
  }
}

/** Runs the installer's commands with their output in the log. An error contains the last lines of the output. */
export class Steps {
  private readonly options: StepsOptions & { watchLog: (file: string) => () => void };
  private readonly exec: (command: string, args: readonly string[], log: number) => Promise<number | null>;

  constructor(options: Steps["options"], exec: Steps["exec"]) {
    this.options = options;
    this.exec = exec;
  }

  /** `explain` finds the cause of a failure in the output, for the first line of the error. */
  async run(
    what: string,
    command: string,
    args: readonly string[],
    explain: (output: string) => string | undefined = () => undefined,
  ): Promise<void> {
    const { logFile } = this.options;
    await note(logFile, `installing: ${what}`);
    const log = await open(logFile, "a", 0o600);
    // If the log is too long already, it is rotated now.
    const watched = this.options.watchLog(logFile);
    let output: string;
    try {
      const from = { at: (await log.stat()).size, older: await olderOf(logFile) };
      if ((await this.exec(command, args, log.fd)) === 0) return;
      output = await outputSince(logFile, from);
    } finally {
      watched();
      await log.close();
    }
    throw stepFailed(what, output, explain(output));
  }
}

/** The output since `from`. If the log was rotated meanwhile, its first part is in the older file. */
async function outputSince(
  logFile: string,
  from: { at: number; older: string | undefined },
): Promise<string> {
  const now = await readFile(logFile);
  if ((await olderOf(logFile)) === from.older) return now.subarray(from.at).toString();
  return `${await readFile(`${logFile}.1`, "utf8").catch(() => "")}${now}`;
}

/** Identifies the older file of the log. */
async function olderOf(logFile: string): Promise<string | undefined> {
  return stat(`${logFile}.1`).then(
    ({ ino, mtimeMs, size }) => `${ino} ${mtimeMs} ${size}`,
    () => undefined,
  );
}

const RECORD = ".installer";

/** A file beside the environment that names the process that works on it. */
function recordOf(environment: string): string {
  return `${environment}${RECORD}`;
}

interface Former {
  pid: number;
  start: string;
  /** The directory of the environments. In a copy of it, the process is that of another server. */
  root: string;
}

/** At once: the server may be killed in the next moment. */
function recordInstaller(environment: string, pid: number): void {
  try {
    const root = realpathSync(dirname(environment));
    const former: Former = { pid, start: processStartTime(pid) ?? "", root };
    writeFileSync(recordOf(environment), JSON.stringify(former));
  } catch {
    // The disk is full. A killed server leaves this one running.
  }
}

/** The installer that a killed server left running for this environment. */
async function formerInstaller(environment: string): Promise<Former | undefined> {
  try {
    const record = JSON.parse(await readFile(recordOf(environment), "utf8")) as Former;
    return record.root === realpathSync(dirname(environment)) ? record : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Ends the installer that a killed server left running, with its children. Two installers would write into one
 * directory.
 */
export async function endFormerInstaller(environment: string): Promise<void> {
  const former = await formerInstaller(environment);
  if (former !== undefined) {
    const { pid, start } = former;
    if (isSameProcess(pid, start)) signalGroup(pid, "SIGKILL");
    while (isSameProcess(pid, start)) await delay(POLL_MS);
  }
  await forgetInstaller(environment);
}

/** The same for all environments of a directory, without waiting: this server makes anew what it needs. */
export async function endFormerInstallers(root: string): Promise<void> {
  for (const name of await readdir(root).catch(() => [])) {
    if (!name.endsWith(RECORD)) continue;
    const former = await formerInstaller(join(root, name.slice(0, -RECORD.length)));
    if (former !== undefined && isSameProcess(former.pid, former.start)) signalGroup(former.pid, "SIGKILL");
  }
}

export async function forgetInstaller(environment: string): Promise<void> {
  await rm(recordOf(environment), { force: true });
}

export async function note(logFile: string, line: string): Promise<void> {
  await mkdir(dirname(logFile), { recursive: true });
  await appendFile(logFile, `${new Date(wallMs()).toISOString()} ${line}\n`);
}
