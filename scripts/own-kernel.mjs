/**
 * Runs a command in a Linux of its own: user-mode Linux (Debian: user-mode-linux), a kernel as a process, on this machine's files
 * read-only. For what needs a kernel that is set up otherwise than this machine's: cgroup v2 with memory.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { root } from "./setup.mjs";

const MEMORY = "3072M";
const LIMIT_MS = 600_000;

export function hasOwnKernel() {
  return spawnSync("linux.uml", ["--version"], { stdio: "ignore" }).status === 0;
}

/** Its exit status (undefined: it did not come to an end), and what `read` makes of the directory that it knows as /mnt. `env` is all that it sees beside PATH. */
export function runInOwnKernel(command, env, read) {
  const directory = mkdtempSync(join(tmpdir(), "quern-kernel-"));
  try {
    writeFileSync(join(directory, "status"), "");
    writeFileSync(join(directory, "init"), init(directory, command, env), { mode: 0o755 });
    const args = [`mem=${MEMORY}`, "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet"];
    spawnSync("linux.uml", [...args, `init=${join(directory, "init")}`, "con=null", "con0=fd:0,fd:1"], {
      stdio: ["ignore", "inherit", "ignore"],
      timeout: LIMIT_MS,
      killSignal: "SIGKILL",
      // Its memory is a file there.
      env: { PATH: process.env.PATH, HOME: directory, TMPDIR: tmpdir() },
    });
    const status = readFileSync(join(directory, "status"), "utf8").trim();
    return { status: status === "" ? undefined : Number(status), result: read(directory) };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function init(directory, command, env) {
  const exports = Object.entries({
    HOME: "/tmp",
    ...env,
    PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
  })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `export ${name}=${quoted(value)}`);
  return `#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
# What is written there is on the machine's disk; the rest is gone with the kernel.
mount -t hostfs -o ${quoted(directory)} none /mnt
mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
mount -t cgroup2 cgroup /sys/fs/cgroup
ip link set lo up || ifconfig lo up
${exports.join("\n")}
cd ${quoted(root)}
{ ${command.map(quoted).join(" ")}; echo $? > /mnt/status; } 2>&1 | cat
echo o > /proc/sysrq-trigger
sleep 60
`;
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
