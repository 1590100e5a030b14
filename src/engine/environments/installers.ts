/**
 * Runs the commands that create an environment, one after the other, with their output in a log. They end when the
 * server stops. Commands that a killed server left running are ended before its environment is created again.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { appendFile, mkdir, open, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { delay, wallMs } from "../../base/clock.ts";
import { isSameProcess, processStartTime, signalGroup } from "../../base/process-identity.ts";
import { EnvironmentError } from "./environment-error.ts";

const LAST_LINES = 15;
const POLL_MS = 20;

interface StepsOptions {
  cwd: string;
  logFile: string;
  env: NodeJS.ProcessEnv;
  /** The directory of the environment that the commands create. */
  environment: string;
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
    { cwd, env, environment }: StepsOptions,
    command: string,
    args: readonly string[],
    log: number,
  ): Promise<number | null> {
    if (this.isStopped) return new Promise(() => {});
    return new Promise((done, reject) => {
      const child = spawn(command, args, { cwd, env, stdio: ["ignore", log, log], detached: true });
      child.once("error", reject);
      child.once("spawn", () => {
        this.running.add(child);
        const former = { pid: child.pid, start: processStartTime(child.pid!) };
        writeFile(recordOf(environment), JSON.stringify(former)).catch(() => {});
      });
      child.once("exit", (code) => {
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
    const cause = explain(output);
    const lines = output.trim().split("\n").slice(-LAST_LINES).join("\n");
    throw new EnvironmentError(`${what} failed:${cause === undefined ? "" : ` ${cause}`}\n${lines}`);
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

/** A file beside the environment that names the process that works on it. */
function recordOf(environment: string): string {
  return `${environment}.installer`;
}

/**
 * Ends the installer that a killed server left running, with its children. Two installers would write into one
 * directory.
 */
export async function endFormerInstaller(environment: string): Promise<void> {
  const record = /^\{"pid":(\d+),"start":"(.+)"\}$/.exec(
    await readFile(recordOf(environment), "utf8").catch(() => ""),
  );
  if (record !== null) {
    const pid = Number(record[1]);
    const start = record[2]!;
    if (isSameProcess(pid, start)) signalGroup(pid, "SIGKILL");
    while (isSameProcess(pid, start)) await delay(POLL_MS);
  }
  await forgetInstaller(environment);
}

export async function forgetInstaller(environment: string): Promise<void> {
  await rm(recordOf(environment), { force: true });
}

export async function note(logFile: string, line: string): Promise<void> {
  await mkdir(dirname(logFile), { recursive: true });
  await appendFile(logFile, `${new Date(wallMs()).toISOString()} ${line}\n`);
}
