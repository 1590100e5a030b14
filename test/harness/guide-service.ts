/** The units of the guide (docs/guides/service.md), for a real systemd and this checkout. */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { eventually } from "./eventually.ts";
import { root } from "./server.ts";

export const HOME = join(tmpdir(), "service");
export const DATA = join(HOME, "data");
/** The whole of a service, in a kernel that is a process itself, beside other tests. */
export const START_MS = 300_000;
export const BASE = "http://127.0.0.1:8420";

/** If every user may read the checkout, the service runs as `nobody`. */
const isOpen = (path: string): boolean =>
  (statSync(path).mode & 0o5) === 0o5 && (path === "/" || isOpen(dirname(path)));
const USER = isOpen(root) ? "nobody" : "root";

export const systemctl = (...args: string[]) =>
  spawnSync("systemctl", args, { encoding: "utf8" }).stdout.trim();
export const property = (name: string) => systemctl("show", "quern", "--value", "-p", name);

/** Runs a command against the service. */
export function quern(...args: string[]): string {
  const env = { ...process.env, QUERN_DATA_DIR: DATA, HOME };
  const { stdout, stderr } = spawnSync(join(root, "bin", "quern"), args, { encoding: "utf8", env });
  return stdout + stderr;
}

/** A block of the guide that has a file's name. */
export function guideBlock(language: string, name: string): string {
  const guide = readFileSync(join(root, "docs", "guides", "service.md"), "utf8");
  return new RegExp(`\`\`\`${language} ${name.replace(".", "\\.")}\\n([^\`]*)\`\`\``).exec(guide)![1]!;
}

/** A unit of the guide with this checkout's paths. */
function unit(name: string): string {
  const mine = { "/opt/quern/node_modules/.bin/quern": join(root, "bin", "quern"), "/var/lib/quern": DATA };
  // A user of its own has the data directory as its home.
  let unit = guideBlock("ini", name).replace("User=quern", `User=${USER}\nEnvironment=HOME=${DATA}`);
  for (const [theirs, ours] of Object.entries({ ...mine, "/srv/data": join(HOME, "inputs") }))
    unit = unit.replaceAll(theirs, ours);
  // Nothing else of a whole system runs here.
  return unit
    .replace("[Unit]", "[Unit]\nDefaultDependencies=no")
    .replace(/ ?network-online\.target ?/g, "")
    .replace(/^(After|Wants)=\n/gm, "");
}

export const isServing = () =>
  eventually(
    "it serves",
    () =>
      fetch(`${BASE}/-/livez`).then(
        ({ ok }) => ok,
        () => false,
      ),
    START_MS,
  );

/** Starts the service. systemd says that it is started once it is ready. */
export async function startService(): Promise<void> {
  for (const directory of [DATA, join(HOME, "inputs")]) mkdirSync(directory, { recursive: true });
  spawnSync("chown", [USER, HOME, DATA]);
  for (const name of ["quern.service", "quern.socket"])
    writeFileSync(`/run/systemd/system/${name}`, unit(name));
  systemctl("daemon-reload");
  systemctl("start", "quern");
  await isServing();
}

/** Stops it and its socket. */
export function stopService(): void {
  systemctl("stop", "quern.socket", "quern.service");
}

/** Writes a project with one API called `echo` and deploys it. */
export function deployEcho(predictor: string): string {
  mkdirSync(join(HOME, "project"));
  const config = "- name: echo\n  predictor: {path: predictor.py}\n  compute: {mem: 100Mi}\n";
  writeFileSync(join(HOME, "project", "quern.yaml"), config);
  writeFileSync(join(HOME, "project", "predictor.py"), predictor);
  return quern("deploy", join(HOME, "project"), "--wait");
}

/** Asks it for a prediction. */
export function predict(payload: number | string): Promise<Response> {
  return fetch(`${BASE}/echo`, {
    method: "POST",
    body: JSON.stringify(payload),
    headers: { "content-type": "application/json" },
  });
}
