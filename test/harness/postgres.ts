/** A real PostgreSQL in a directory of its own: started, killed, paused and started again by tests. */
import { execFileSync, spawnSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { freePort } from "./faulty-proxy.ts";
import { processes } from "./processes.ts";

const DEBIAN = "/usr/lib/postgresql";

/** The directory of `initdb` and `pg_ctl`: Debian's newest, or one of the PATH. */
function binaries(): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a)) : [];
  const places = [
    ...versions.map((version) => join(DEBIAN, version, "bin")),
    ...(process.env.PATH ?? "").split(delimiter),
  ];
  return places.find((place) => existsSync(join(place, "initdb")));
}

export const isPostgresInstalled = binaries() !== undefined;

/** Runs one statement by `psql`, for those that cannot wait for an answer. */
export function psql(url: string, statement: string): string {
  const args = [url, "-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-c", statement];
  const { status, stdout, stderr } = spawnSync(join(binaries()!, "psql"), args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`psql: ${stderr}`);
  return stdout.trim();
}

export class Postgres {
  readonly port: number;
  private readonly directory: string;
  private readonly extra: string;

  private constructor(directory: string, port: number, extra: string) {
    this.directory = directory;
    this.port = port;
    this.extra = extra;
  }

  /** `extra`: more of its parameters, as on its command line. */
  static async start(extra = ""): Promise<Postgres> {
    const directory = mkdtempSync(join(tmpdir(), "quern-postgres-"));
    if (isRoot()) execFileSync("chown", ["postgres", directory]);
    chmodSync(directory, 0o700);
    const postgres = new Postgres(directory, await freePort(), extra);
    postgres.run("initdb", "-D", postgres.data, "-U", "quern", "-A", "trust", "--no-sync", "-E", "UTF8");
    postgres.begin();
    return postgres;
  }

  get url(): string {
    return this.urlOf("postgres");
  }

  urlOf(database: string, port = this.port): string {
    return `postgres://quern@127.0.0.1:${port}/${database}`;
  }

  /** Starts it, or starts it again. */
  begin(): void {
    const { port, directory, extra } = this;
    // What survives a kill is in the memory of the system. Only a power cut would need more.
    const options = `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=${directory} -c fsync=off -c max_connections=40 ${extra}`;
    const args = ["-D", this.data, "-w", "-l", join(directory, "log"), "-o", options, "start"];
    // For a moment after a kill, the memory that its processes shared is still there.
    for (let triesLeft = 30; ; triesLeft--) {
      try {
        return this.run("pg_ctl", ...args);
      } catch (error) {
        if (triesLeft === 0)
          throw new Error(`PostgreSQL does not start: ${this.log.slice(-2000)}`, { cause: error });
        execFileSync("sleep", ["0.2"]);
      }
    }
  }

  /** `fast` ends the sessions and then itself; `immediate` is as hard as a crash. */
  end(mode: "fast" | "immediate" = "immediate"): void {
    this.run("pg_ctl", "-D", this.data, "-m", mode, "-w", "stop");
  }

  /** Accepts connections of a network, such as `10.0.0.0/8`, at the addresses in `extra`. */
  admit(network: string): void {
    appendFileSync(join(this.data, "pg_hba.conf"), `host all all ${network} trust\n`);
    this.run("pg_ctl", "-D", this.data, "reload");
  }

  /** Kills all its processes at once, as a crash of the machine does. */
  kill(): void {
    this.pause();
    this.signal(this.pids, "SIGKILL");
    // pg_ctl starts no second one while the first may be there.
    rmSync(join(this.data, "postmaster.pid"), { force: true });
  }

  /** All its processes stand still: connections stay open, and nothing is answered. */
  pause(): void {
    // The first one first: it can start no other process then.
    this.signal(this.pids.slice(0, 1), "SIGSTOP");
    this.signal(this.pids, "SIGSTOP");
  }

  resume(): void {
    this.signal(this.pids, "SIGCONT");
  }

  /** A session may end at this moment. */
  private signal(pids: readonly number[], signal: NodeJS.Signals): void {
    for (const pid of pids)
      try {
        process.kill(pid, signal);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
      }
  }

  get log(): string {
    return readFileSync(join(this.directory, "log"), "utf8");
  }

  stop(): void {
    if (this.pids.length > 0) {
      this.resume();
      this.end();
    }
    rmSync(this.directory, { recursive: true, force: true });
  }

  private get data(): string {
    return join(this.directory, "data");
  }

  /** The first process, and those that it has started. */
  private get pids(): number[] {
    const all = processes();
    const first = all.find(
      ({ command }) => command.includes(`-D ${this.data}`) && !command.includes("pg_ctl"),
    );
    if (first === undefined) return [];
    return [first.pid, ...all.filter(({ ppid }) => ppid === first.pid).map(({ pid }) => pid)];
  }

  private run(command: string, ...args: string[]): void {
    // It refuses to run as root: Debian's package brings a user for it.
    const asUser = isRoot() ? ["runuser", "-u", "postgres", "--"] : [];
    const [program, ...rest] = [...asUser, join(binaries()!, command), ...args];
    execFileSync(program!, rest, { cwd: "/", stdio: "ignore" });
  }
}

function isRoot(): boolean {
  return process.getuid!() === 0;
}

export function startPostgres(): Promise<Postgres> {
  return Postgres.start();
}
