/** A real PostgreSQL in a directory of its own, for one test file; undefined if none is installed. */
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { freePort } from "./faulty-proxy.ts";

const DEBIAN = "/usr/lib/postgresql";

export interface Postgres {
  url: string;
  stop: () => void;
}

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

export async function startPostgres(): Promise<Postgres> {
  const bin = binaries()!;
  const directory = mkdtempSync(join(tmpdir(), "quern-postgres-"));
  const port = await freePort();
  // It refuses to run as root: Debian's package brings a user for it.
  const asUser = process.getuid!() === 0 ? ["runuser", "-u", "postgres", "--"] : [];
  const run = (command: string, ...args: string[]) => {
    const [program, ...rest] = [...asUser, join(bin, command), ...args];
    execFileSync(program!, rest, { cwd: "/", stdio: ["ignore", "ignore", "inherit"] });
  };
  if (asUser.length > 0) execFileSync("chown", ["postgres", directory]);
  chmodSync(directory, 0o700);
  const data = join(directory, "data");
  run("initdb", "-D", data, "-U", "quern", "-A", "trust", "--no-sync", "-E", "UTF8");
  const options = `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=${directory}`;
  run("pg_ctl", "-D", data, "-w", "-l", join(directory, "log"), "-o", options, "start");
  return {
    url: `postgres://quern@127.0.0.1:${port}/postgres`,
    stop: () => {
      run("pg_ctl", "-D", data, "-m", "immediate", "stop");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
