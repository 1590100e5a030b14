/** The unit of the guide (docs/guides/service.md) under a real systemd, as a user without rights. */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../harness/eventually.ts";
import {
  DATA,
  deployEcho,
  guideBlock,
  HOME,
  isServing,
  predict,
  property,
  quern,
  START_MS,
  startService,
  stopService,
} from "../harness/guide-service.ts";
import { root } from "../harness/server.ts";

const GROUP = "/sys/fs/cgroup/system.slice/quern.service";
/** Allocates the requested MiB, or reports the rights of the service. */
const PREDICTOR = `
import ctypes, mmap, multiprocessing, os, subprocess, sys, tempfile, threading

class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        if payload == "rights": return {name: outcome(getattr(self, name)) for name in dir(self) if name[0] != "_" and name != "predict"}
        return len(b"x" * (payload << 20))

    def machine_code(self): mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC).write(b"x")
    def bind_to_a_core(self): os.sched_setaffinity(0, os.sched_getaffinity(0))
    def start_processes(self): multiprocessing.get_context("fork").Pool(1).map(len, ["x"])
    def shared_memory(self): tempfile.TemporaryFile(dir="/dev/shm").write(b"x")
    def temporary_files(self): tempfile.TemporaryFile().write(b"x")
    def run_programs(self): subprocess.run([sys.executable, "-m", "venv", "--without-pip", os.path.expanduser("~/venv")], check=True)
    def see_other_processes(self): os.listdir("/proc/1")
    def read_homes(self): assert os.listdir("/root"), "nothing is there"
    def write_elsewhere(self): open("/var/written", "w").close()
    def write_into_the_group(self): open("/sys/fs/cgroup/system.slice/quern.service/memory.max", "w").write("max")
    def new_namespace(self): check(ctypes.CDLL(None, use_errno=True).unshare(0x10000000))
    def change_owner(self): check(ctypes.CDLL(None, use_errno=True).chown(os.path.expanduser("~/venv").encode(), -1, -1))
    def raw_sockets(self): __import__("socket").socket(17, 3, 0)

def check(code):
    if code < 0: raise OSError(ctypes.get_errno(), "refused")

def outcome(attempt):
    try:
        attempt()
        return "yes"
    except BaseException as error:
        return "no (%s)" % type(error).__name__
`;

beforeAll(async () => {
  await startService();
  // Commands find the server by it.
  await eventually("its address is there", () => existsSync(join(DATA, "address")), START_MS);
  expect(deployEcho(PREDICTOR)).toContain("echo is live");
}, START_MS);
afterAll(stopService);

const groups = () =>
  readdirSync(GROUP, { withFileTypes: true }).flatMap((e) => (e.isDirectory() ? e.name : []));

it("the service gives the server a control group in which the kernel enforces compute.mem", async () => {
  expect(groups().sort()).toEqual(["quern", expect.stringMatching(/^r-/)]);
  expect(quern("doctor")).toContain("the kernel enforces the compute.mem of each worker");
  expect(await (await predict(10)).json()).toBe(10 << 20);
  expect((await predict(500)).status).toBeGreaterThanOrEqual(500);
  await eventually("another replica serves", async () => (await predict(1)).status === 200);
  expect(quern("logs", "echo")).toMatch(/was killed because it .* its compute\.mem of 100 MiB/);
});

it("the service has a low exposure by the measure of systemd", () => {
  const file = join(HOME, "quern.service");
  writeFileSync(file, guideBlock("ini", "quern.service"));
  // In tenths: 3.0.
  const args = ["security", "--offline=true", "--threshold=30", "--no-pager", file];
  const { status, stdout, stderr } = spawnSync("systemd-analyze", args, { encoding: "utf8" });
  expect(status, `${stdout.split("\n").at(-2)}${stderr}`).toBe(0);
});

it("the service allows predictors what they need, and nothing else", async () => {
  const rights = (await (await predict("rights")).json()) as Record<string, string>;
  const allowed = Object.keys(rights).filter((name) => rights[name] === "yes");
  expect(allowed.sort(), JSON.stringify(rights)).toEqual([
    ...[
      "bind_to_a_core",
      "machine_code",
      "run_programs",
      "shared_memory",
      "start_processes",
      "temporary_files",
    ],
  ]);
});

it(
  "the server has the group again after kill -9, and stopping the service leaves no process",
  async () => {
    process.kill(Number(property("MainPID")), "SIGKILL");
    await eventually("systemd has started it again", () => property("NRestarts") === "1", START_MS);
    await isServing();
    await eventually("the replica is back", async () => (await predict(1)).status === 200, START_MS);
    expect(groups()).toContain("quern");
    expect(quern("doctor")).toContain("the kernel enforces the compute.mem of each worker");
    stopService();
    expect(property("Result")).toBe("success");
    expect(existsSync(GROUP)).toBe(false);
  },
  START_MS,
);

it("the server has a control group in the scope of a shell too", () => {
  const program = join(root, "dist", "engine", "delegated-cgroup.js");
  const code = `import(${JSON.stringify(program)}).then((m) => console.log(m.claimDelegatedCgroup("python3")))`;
  const scope = ["--scope", "--unit=shell", "-p", "Delegate=yes", "-q"];
  const { stdout } = spawnSync("systemd-run", [...scope, process.execPath, "-e", code], { encoding: "utf8" });
  expect(stdout.trim()).toBe("/sys/fs/cgroup/system.slice/shell.scope");
});
