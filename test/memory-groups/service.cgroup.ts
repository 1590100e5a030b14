/** The unit of the guide (docs/guides/service.md) under a real systemd, as a user without rights. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import { root } from "../harness/server.ts";

const HOME = join(tmpdir(), "service");
const DATA = join(HOME, "data");
const GROUP = "/sys/fs/cgroup/system.slice/quern.service";
const BASE = "http://127.0.0.1:8420";

/** Anybody may read the checkout: then the service is nobody's. */
const isOpen = (path: string): boolean =>
  (statSync(path).mode & 0o5) === 0o5 && (path === "/" || isOpen(dirname(path)));
const USER = isOpen(root) ? "nobody" : "root";

const systemctl = (...args: string[]) => spawnSync("systemctl", args, { encoding: "utf8" }).stdout.trim();
const property = (name: string) => systemctl("show", "quern", "--value", "-p", name);
const quern = (...args: string[]) => {
  const env = { ...process.env, QUERN_DATA_DIR: DATA, HOME };
  const { stdout, stderr } = spawnSync(join(root, "bin", "quern"), args, { encoding: "utf8", env });
  return stdout + stderr;
};

/** The guide's unit with this checkout's paths. */
function unit(): string {
  const guide = readFileSync(join(root, "docs", "guides", "service.md"), "utf8");
  const text = /```ini quern\.service\n([^`]*)```/.exec(guide)![1]!;
  const mine = { "/opt/quern/node_modules/.bin/quern": join(root, "bin", "quern"), "/var/lib/quern": DATA };
  let unit = text.replace("User=quern", `User=${USER}\nEnvironment=HOME=${HOME} TMPDIR=${tmpdir()}`);
  for (const [theirs, ours] of Object.entries({ ...mine, "/srv/data": join(HOME, "inputs") }))
    unit = unit.replace(theirs, ours);
  // Nothing else of a whole system runs here.
  return unit.replace("[Unit]", "[Unit]\nDefaultDependencies=no").replace(/^(After|Wants)=.*\n/gm, "");
}

const isServing = () =>
  eventually("it serves", () =>
    fetch(`${BASE}/-/livez`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );

beforeAll(async () => {
  mkdirSync(join(HOME, "inputs"), { recursive: true });
  spawnSync("chown", [USER, HOME]);
  writeFileSync("/run/systemd/system/quern.service", unit());
  systemctl("daemon-reload");
  systemctl("start", "quern");
  await isServing();
  mkdirSync(join(HOME, "project"));
  const config = "- name: echo\n  predictor: {path: predictor.py}\n  compute: {mem: 100Mi}\n";
  writeFileSync(join(HOME, "project", "quern.yaml"), config);
  const predictor =
    "class PythonPredictor:\n    def __init__(self, config): pass\n    def predict(self, payload): return len(b'x' * (payload << 20))\n";
  writeFileSync(join(HOME, "project", "predictor.py"), predictor);
  expect(quern("deploy", join(HOME, "project"), "--wait")).toContain("echo is live");
});
afterAll(() => void systemctl("stop", "quern"));

const predict = (mib: number) =>
  fetch(`${BASE}/echo`, {
    method: "POST",
    body: String(mib),
    headers: { "content-type": "application/json" },
  });
const groups = () =>
  readdirSync(GROUP, { withFileTypes: true }).flatMap((e) => (e.isDirectory() ? e.name : []));

it("gives the server a group in which the kernel holds workers to their memory", async () => {
  expect(groups().sort()).toEqual(["quern", expect.stringMatching(/^r-/)]);
  expect(quern("doctor")).toContain("the kernel holds each worker to its compute.mem");
  expect(await (await predict(10)).json()).toBe(10 << 20);
  expect((await predict(500)).status).toBeGreaterThanOrEqual(500);
  await eventually("another replica serves", async () => (await predict(1)).status === 200);
  expect(quern("logs", "echo")).toMatch(/was killed because it .* its compute\.mem of 100 MiB/);
});

it("has it again after a kill -9; nothing is left when it is stopped", async () => {
  process.kill(Number(property("MainPID")), "SIGKILL");
  await eventually("systemd has started it again", () => property("NRestarts") === "1");
  await isServing();
  await eventually("the replica is back", async () => (await predict(1)).status === 200);
  expect(groups()).toContain("quern");
  expect(quern("doctor")).toContain("the kernel holds each worker");
  systemctl("stop", "quern");
  expect(property("Result")).toBe("success");
  expect(existsSync(GROUP)).toBe(false);
});

it("has it in a scope of a shell too", () => {
  const program = join(root, "dist", "engine", "own-group.js");
  const code = `import(${JSON.stringify(program)}).then((m) => console.log(m.claimOwnGroup("python3")))`;
  const scope = ["--scope", "--unit=shell", "-p", "Delegate=yes", "-q"];
  const { stdout } = spawnSync("systemd-run", [...scope, process.execPath, "-e", code], { encoding: "utf8" });
  expect(stdout.trim()).toBe("/sys/fs/cgroup/system.slice/shell.scope");
});
