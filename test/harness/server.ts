/** A real server in a directory of its own, through the real command line. `stop` checks that no process is left. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { jobRecordSchema } from "../../src/contracts/http/answers.ts";
import type { Database } from "../../src/database/database.ts";
import { runtimeDirectory } from "../../src/settings/runtime-directory.ts";
import { dropTestDatabase, newTestDatabase, openTestDatabase } from "./databases.ts";
import { eventually } from "./eventually.ts";
import { processes } from "./processes.ts";
import { expectPublished } from "./published-schema.ts";
import type { ApiView, JobView } from "./views.ts";
import { noteVitals } from "./vitals.ts";

/** The checkout. The benchmarks run compiled, from a deeper directory than this file. */
export const root = findRoot(dirname(fileURLToPath(import.meta.url)));
const QUERN = join(root, "bin", "quern");

function findRoot(directory: string): string {
  return existsSync(join(directory, "package.json")) ? directory : findRoot(dirname(directory));
}

/** Starts Node alone in a control group. */
function entering(group: string): string[] {
  return ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', group, process.execPath];
}

/** Starts Node as a service manager does that passes sockets to it. */
const PASSING = ["sh", "-c", 'LISTEN_PID=$$ exec "$0" "$@"', process.execPath];

/** Bound sockets that a server inherits, and their names, separated by colons. */
interface PassedSockets {
  handles: readonly object[];
  names: string;
}

export interface Cli {
  code: number;
  out: string;
  err: string;
}

/** An accepted submission and its answer must match the published schemas. */
async function checkSchema(body: string, response: Response): Promise<void> {
  if (response.status !== 200 || !body.includes('"workers"')) return;
  const answer = await response.clone().text();
  if (!answer.includes('"job_id"')) return;
  expectPublished(body);
  jobRecordSchema.parse(JSON.parse(answer));
}

export type Role = "gateway" | "controller";

export class TestServer {
  readonly dir = realpathSync(mkdtempSync(join(tmpdir(), "quern-test-")));
  readonly dataDir = join(this.dir, "data");
  readonly inputs = join(this.dir, "inputs");
  baseUrl = "";
  stderr = "";
  parent: ChildProcess | undefined;
  /** The started program; `dist/bin.js` is the same in separate modules. */
  program = join(root, "bin", "quern");
  /** The directory in which `quern up` is started. */
  workingDirectory = root;
  /** Processes that a test has stopped for a while. */
  readonly frozen = new Set<Role>();
  /** The sockets that it gets as a service of systemd does. */
  passed: PassedSockets | undefined;
  private readonly env: NodeJS.ProcessEnv;
  /** The PostgreSQL database of its own; undefined on SQLite. */
  private readonly database = newTestDatabase();

  /** The control group of the server, if it gets one of its own. */
  private readonly group: string | undefined;

  constructor(env: NodeJS.ProcessEnv = {}, group?: string) {
    this.group = group;
    mkdirSync(this.inputs);
    // Many small APIs on a machine of two cores; tests about compute set the capacity.
    const own = { QUERN_HOST: undefined, QUERN_DATA_DIR: this.dataDir, QUERN_CPUS: "16", NO_COLOR: "1" };
    this.env = { ...process.env, ...own, ...this.ownDatabase, ...env };
    this.env.XDG_CONFIG_HOME = join(this.dir, "config");
  }

  /** Starts `quern up` and waits until it is ready. `env` is for this start only. */
  async start(env: NodeJS.ProcessEnv = {}, args: string[] = []): Promise<void> {
    this.begin(env, args);
    await this.ready();
  }

  /** Starts `quern up`, and does not wait. */
  begin(env: NodeJS.ProcessEnv = {}, args: string[] = []): void {
    rmSync(join(this.dataDir, "address"), { force: true });
    const port = this.baseUrl === "" ? "0" : new URL(this.baseUrl).port;
    const command = [
      this.program,
      "up",
      "--listen",
      `127.0.0.1:${port}`,
      "--allow-local-root",
      this.inputs,
      ...args,
    ];
    const { handles = [], names = "" } = this.passed ?? {};
    const variables = { LISTEN_FDS: String(handles.length), LISTEN_FDNAMES: names };
    const alone = this.group === undefined ? [process.execPath] : entering(this.group);
    const [file, ...rest] = this.passed === undefined ? alone : PASSING;
    const parent = spawn(file!, [...rest, ...command], {
      env: { ...this.env, ...(this.passed && variables), ...env },
      cwd: this.workingDirectory,
      stdio: ["ignore", "ignore", "pipe", ...(handles as never[])],
    });
    this.parent = parent;
    parent.stderr!.on("data", (text) => {
      this.stderr += String(text);
    });
  }

  async ready(): Promise<void> {
    const { parent } = this;
    await eventually("the server is ready", () => {
      if (parent!.exitCode !== null) throw new Error(`quern up ended: ${this.stderr}`);
      return existsSync(join(this.dataDir, "address"));
    });
    const before = this.baseUrl;
    this.baseUrl = readFileSync(join(this.dataDir, "address"), "utf8").trim();
    if (before !== "" && before !== this.baseUrl)
      throw new Error(`the server moved from ${before} to ${this.baseUrl}`);
  }

  /** Runs a command against this server. */
  cli(args: string[], options: { input?: string; cwd?: string } = {}): Cli {
    const { status, stdout, stderr } = spawnSync(process.execPath, [QUERN, ...args], {
      env: this.env,
      encoding: "utf8",
      timeout: 100_000,
      maxBuffer: 1 << 28,
      ...options,
    });
    return { code: status ?? -1, out: stdout, err: stderr };
  }

  /** The same without blocking this process. */
  async cliBeside(args: string[], env: NodeJS.ProcessEnv = {}): Promise<Cli> {
    const command = this.startCli(args, env);
    return { code: await command.ended, out: command.out, err: command.err };
  }

  /** A command that runs while the test continues; `ended` resolves to its exit code. */
  startCli(
    args: string[],
    env: NodeJS.ProcessEnv = {},
  ): { process: ChildProcess; out: string; err: string; ended: Promise<number> } {
    const child = spawn(process.execPath, [QUERN, ...args], {
      env: { ...this.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const ended = new Promise<number>((resolve) => child.once("close", (code) => resolve(code ?? -1)));
    const command = { process: child, out: "", err: "", ended };
    child.stdout.on("data", (text) => (command.out += String(text)));
    child.stderr.on("data", (text) => (command.err += String(text)));
    return command;
  }

  /** Writes a project and deploys it; fails the test if the command fails. */
  deploy(files: Record<string, string>, options: { wait?: boolean } = {}): string {
    const project = this.writeProject(files);
    const { code, out, err } = this.cli(["deploy", project, ...(options.wait === false ? [] : ["--wait"])]);
    if (code !== 0) throw new Error(`deploy failed (${code}): ${out}${err}\n${this.stderr}`);
    return out;
  }

  /** The same without blocking this process: for tests with their own clients. */
  async deployBeside(files: Record<string, string> | string, ...options: string[]): Promise<void> {
    const project = typeof files === "string" ? files : this.writeProject(files);
    const args = [QUERN, "deploy", project, "--wait", ...options];
    const child = spawn(process.execPath, args, { env: this.env, stdio: ["ignore", "ignore", "pipe"] });
    let err = "";
    child.stderr.on("data", (text) => (err += String(text)));
    const code = await new Promise((resolve) => child.once("exit", resolve));
    if (code !== 0) throw new Error(`deploy failed (${code}): ${err}`);
  }

  private writeProject(files: Record<string, string>): string {
    const project = join(this.dir, "project");
    rmSync(project, { recursive: true, force: true });
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(project, name)), { recursive: true });
      writeFileSync(join(project, name), text);
    }
    return project;
  }

  /** While a command ran, this process could not notice idle connections that the server closed. */
  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    await nextTurn();
    const response = await fetch(this.baseUrl + path, init);
    if (init.method === "POST" && typeof init.body === "string") await checkSchema(init.body, response);
    return response;
  }

  post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    return this.fetch(path, {
      method: "POST",
      body: text,
      headers: { "content-type": "application/json", ...headers },
    });
  }

  async submit(api: string, job: Record<string, unknown>): Promise<string> {
    const response = await this.post(`/${api}`, job);
    const answer = (await response.json()) as { job_id: string };
    if (response.status !== 200) throw new Error(`submission refused: ${JSON.stringify(answer)}`);
    return answer.job_id;
  }

  async job(api: string, jobId: string): Promise<JobView> {
    const response = await this.fetch(`/${api}/${jobId}`);
    return ((await response.json()) as { job_status: JobView }).job_status;
  }

  /** Waits for the end of a job, also across restarts of the server. */
  async ended(api: string, jobId: string, timeoutMs = 60_000): Promise<JobView> {
    let last: JobView | undefined;
    await eventually(
      `job ${jobId} ends`,
      async () => {
        last = await this.job(api, jobId).catch(() => last);
        return last?.end_time !== undefined;
      },
      timeoutMs,
      () => JSON.stringify(last),
    );
    return last!;
  }

  /** On a new connection, because a killed gateway breaks the others. */
  async api(name: string): Promise<ApiView> {
    const token = readFileSync(join(this.dataDir, "admin-token"), "utf8").trim();
    const headers = { authorization: `Bearer ${token}`, connection: "close" };
    return (await (await this.fetch(`/-/apis/${name}`, { headers })).json()) as ApiView;
  }

  /** Predictions that wait or run, as the gateways reported them last: at most a second ago. */
  async inFlight(api: string): Promise<number> {
    const found = new RegExp(`^quern_requests_in_flight\\{api="${api}"\\} (\\d+)$`, "m");
    return Number(found.exec(await this.metrics())?.[1]);
  }

  async metrics(): Promise<string> {
    const token = readFileSync(join(this.dataDir, "admin-token"), "utf8").trim();
    const headers = { authorization: `Bearer ${token}`, connection: "close" };
    return (await this.fetch("/-/metrics", { headers })).text();
  }

  /** The variable that names its database, for commands of a test's own. */
  get ownDatabase(): { QUERN_DATABASE?: string } {
    return this.database === undefined ? {} : { QUERN_DATABASE: this.database };
  }

  /** Its database, also while it runs. */
  openDatabase(): Database {
    return openTestDatabase(this.dataDir, this.database);
  }

  writeInput(name: string, text: string): string {
    writeFileSync(join(this.inputs, name), text);
    return `file://${join(this.inputs, name)}`;
  }

  /** The parent's children, by role. */
  child(role: Role): number {
    const found = processes().find(
      ({ ppid, command }) => ppid === this.parent!.pid && command.includes(`__${role}`),
    );
    if (found === undefined) throw new Error(`there is no ${role}`);
    return found.pid;
  }

  /** Stops a process (SIGSTOP) until the function that this returns is called. */
  freeze(role: Role): () => void {
    const pid = this.child(role);
    this.frozen.add(role);
    process.kill(pid, "SIGSTOP");
    return () => process.kill(pid, "SIGCONT");
  }

  workers(): number[] {
    const directory = runtimeDirectory(this.dataDir);
    return processes()
      .filter(({ command }) => command.includes(directory))
      .map(({ pid }) => pid);
  }

  /** The processes of applications' pipelines. */
  stages(): number[] {
    return processes()
      .filter(({ command }) => command.includes("quern_application") && command.includes(this.dataDir))
      .map(({ pid }) => pid);
  }

  async stop(): Promise<void> {
    await noteVitals(this).catch((error: Error) => console.error(`no vitals: ${error.message}`));
    await this.stopProcesses();
    dropTestDatabase(this.database);
    rmSync(runtimeDirectory(this.dataDir), { recursive: true, force: true });
    // Packages that were being installed when the server stopped still come for a moment.
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }

  /** Its data stays: it may be started again. */
  async stopProcesses(): Promise<void> {
    const { parent } = this;
    if (parent !== undefined && parent.exitCode === null && parent.signalCode === null) {
      const exited = new Promise((resolve) => parent.once("exit", resolve));
      parent.kill("SIGTERM");
      await exited;
    }
    await eventually("no worker is left", () => this.workers().length + this.stages().length === 0, 45_000);
  }
}
