/**
 * Runs a command in a Linux of its own: user-mode Linux (Debian: user-mode-linux), a kernel as a process, with systemd, on this
 * machine's files read-only. For tests that need a differently configured machine: cgroup v2 with memory, and services.
 */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { root } from "./setup.mjs";

const SYSTEMD = "/lib/systemd/systemd";
const MEMORY = "3072M";
const LIMIT_MS = 1_200_000;
const PROBE_MS = 30_000;
/** This machine's files, read-only. */
const ROOT = ["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet"];
/** The directories that are writable there; their contents are lost with the kernel. */
const TEMPORARY = "/run/temporary";

/** Services get a part of these for themselves (`PrivateTmp=`), so that they must be writable; not where this checkout or Node is in one. */
const EMPTY = ["/tmp", "/var/tmp"].filter(
  (path) => ![root, process.execPath].some((used) => used.startsWith(`${path}/`)),
);

/** Describes what this machine lacks; undefined if it lacks nothing. */
export function missingForOwnKernel() {
  const hasKernel = spawnSync("linux.uml", ["--version"], { stdio: "ignore" }).status === 0;
  if (!hasKernel) return "user-mode Linux (linux.uml), in Debian's package user-mode-linux";
  if (!existsSync(SYSTEMD)) return `systemd (${SYSTEMD})`;
  return runsHere() ? undefined : "a processor whose registers user-mode Linux can hold (this one has AMX)";
}

/** Linux 6.1 has room for the registers of AVX-512, and not for those of AMX: then its first process ends at once. */
function runsHere() {
  const args = ["mem=64M", "init=/bin/true", "con=null", "con0=fd:0,fd:1"];
  const { stdout } = spawnSync("linux.uml", [...ROOT, ...args], { timeout: PROBE_MS, encoding: "utf8" });
  return !stdout.includes("ptrace set fp regs failed");
}

/**
 * Resolves to the command's exit status (undefined if it did not end), and the result of `read` for the directory that
 * it sees as /mnt. It gets only `env` and PATH as variables. Its output is printed when it has ended, so that several
 * may run at once.
 */
export async function runInOwnKernel(command, env, read) {
  const directory = mkdtempSync(join(tmpdir(), "quern-kernel-"));
  try {
    writeFileSync(join(directory, "status"), "");
    writeFileSync(join(directory, "init"), init(directory), { mode: 0o755 });
    writeFileSync(join(directory, "command"), shell(command, env));
    const args = [`mem=${MEMORY}`, `init=${join(directory, "init")}`, "con=null", "con0=fd:0,fd:1"];
    await boot([...ROOT, ...args], {
      PATH: process.env.PATH,
      HOME: directory,
      TMPDIR: tmpdir(),
    });
    const status = readFileSync(join(directory, "status"), "utf8").trim();
    return { status: status === "" ? undefined : Number(status), result: read(directory) };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Runs a kernel until it is switched off, at most LIMIT_MS, and prints the output of its console. */
async function boot(args, env) {
  const options = { stdio: ["ignore", "pipe", "ignore"], timeout: LIMIT_MS, killSignal: "SIGKILL", env };
  const kernel = spawn("linux.uml", args, options);
  const console = await text(kernel.stdout);
  process.stdout.write(console);
}

/** The first process: makes directories writable, and becomes systemd with one service, the command. */
function init(directory) {
  return `#!/bin/sh
PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t hostfs -o ${quoted(directory)} none /mnt
mount -t tmpfs run /run
mkdir -p -m 1777 ${TEMPORARY}
mkdir -p /run/systemd/system
${EMPTY.map((path) => `mount -t tmpfs -o mode=1777 empty ${path}`).join("\n")}
cat > /run/systemd/system/command.service <<'UNIT'
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
ExecStart=/bin/sh /mnt/command
StandardOutput=tty
StandardError=tty
TTYPath=/dev/console
UNIT
cat > /run/systemd/system/command.target <<'UNIT'
[Unit]
DefaultDependencies=no
Wants=command.service
UNIT
exec ${SYSTEMD} --unit=command.target --show-status=no --log-level=err
`;
}

function shell(command, env) {
  const path = `${dirname(process.execPath)}:${process.env.PATH}`;
  const exports = Object.entries({ HOME: TEMPORARY, TMPDIR: TEMPORARY, ...env, PATH: path })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `export ${name}=${quoted(value)}`);
  return `ip link set lo up || ifconfig lo up
${exports.join("\n")}
cd ${quoted(root)}
{ ${command.map(quoted).join(" ")}; echo $? > /mnt/status; } 2>&1 | cat
echo o > /proc/sysrq-trigger
sleep 60
`;
}

function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
