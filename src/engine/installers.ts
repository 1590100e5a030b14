/**
 * The commands that make an environment, one after the other, with their output in a log. None outlives the server in vain: they end
 * when it stops, and what a killed server left is ended before its environment is made again.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { appendFile, mkdir, open, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { delay, wallMs } from "../base/clock.ts";
import { isSameProcess, processStartTime, signalGroup } from "../base/process-identity.ts";

const LAST_LINES = 15;
const LOOK_MS = 20;

export class EnvironmentError extends Error {}

interface StepsOptions {
  cwd: string;
  logFile: string;
  env: NodeJS.ProcessEnv;
  /** The directory of the environment that they make. */
  environment: string;
}

export class Installers {
  private readonly running = new Set<ChildProcess>();
  private readonly watchLog: (file: string) => () => void;
  private isStopped = false;

  /** `watchLog` keeps a log that grows within its bounds, until the returned function is called. */
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

  /** Its exit code. Never settles once we are stopped: that the step was cut off is no fault of the project's. */
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

/** Runs the installer's commands with their output in the log; an error has the last lines of it. */
export class Steps {
  private readonly options: StepsOptions & { watchLog: (file: string) => () => void };
  private readonly exec: (command: string, args: readonly string[], log: number) => Promise<number | null>;

  constructor(options: Steps["options"], exec: Steps["exec"]) {
    this.options = options;
    this.exec = exec;
  }

  /** `explain` finds in the output what is behind a failure, for the first line of the error. */
  async run(
    what: string,
    command: string,
    args: readonly string[],
    explain: (output: string) => string | undefined = () => undefined,
  ): Promise<void> {
    const { logFile } = this.options;
    await note(logFile, `installing: ${what}`);
    const log = await open(logFile, "a", 0o600);
    // What came before is cut now, where it is too much.
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

/** What came since then. A log that grew too long began anew, and what it had is in another older file. */
async function outputSince(
  logFile: string,
  from: { at: number; older: string | undefined },
): Promise<string> {
  const now = await readFile(logFile);
  if ((await olderOf(logFile)) === from.older) return now.subarray(from.at).toString();
  return `${await readFile(`${logFile}.1`, "utf8").catch(() => "")}${now}`;
}

/** Which file has what was in the log before. */
async function olderOf(logFile: string): Promise<string | undefined> {
  return stat(`${logFile}.1`).then(
    ({ ino, mtimeMs, size }) => `${ino} ${mtimeMs} ${size}`,
    () => undefined,
  );
}

/** Beside the environment: which process works on it. */
function recordOf(environment: string): string {
  return `${environment}.installer`;
}

/** Ends the installer that a killed server left behind, with all that it started: two would write into one directory. */
export async function endFormerInstaller(environment: string): Promise<void> {
  const record = /^\{"pid":(\d+),"start":"(.+)"\}$/.exec(
    await readFile(recordOf(environment), "utf8").catch(() => ""),
  );
  if (record !== null) {
    const pid = Number(record[1]);
    const start = record[2]!;
    if (isSameProcess(pid, start)) signalGroup(pid, "SIGKILL");
    while (isSameProcess(pid, start)) await delay(LOOK_MS);
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
