/** `quern doctor`: checks the machine and the installation, and suggests a cure for each problem. */
import { execFile } from "node:child_process";
import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs";
import { opendir, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { isTooOld, minorVersionOf } from "../contracts/config/python-versions.ts";
import type { ComputeShown, MemoryLimits } from "../contracts/http/answers.ts";
import { type CliContext, CliError, EXIT } from "./server/context.ts";
import { type Finding, showFindings } from "./terminal/findings.ts";
import { size } from "./terminal/table.ts";

const run = promisify(execFile);
const DISK_LEAST_BYTES = 2 * 1024 ** 3;
/** In which `stat` counts, whatever the file system has (POSIX, sys_stat.h). */
const BLOCK_BYTES = 512;
const OPEN_FILES_LEAST = 1024;

export async function doctor(context: CliContext): Promise<number> {
  const findings = [
    node(),
    await python(context.python),
    await installer(context.python),
    dataDirectory(context.files.dataDir),
    await database(context),
    await diskUse(context.files.dataDir),
    await openFiles(),
    ...(await server(context)),
  ];
  return showFindings(context, findings);
}

function node(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const isFine = major > 20 || (major === 20 && minor >= 12);
  return {
    check: "node",
    result: isFine ? "ok" : "fail",
    detail: process.version,
    ...(isFine ? {} : { cure: "install Node.js 20.12 or later" }),
  };
}

async function python(command: string): Promise<Finding> {
  const check = "python";
  const cure = "install Python 3.9 or later, or name one with --python or QUERN_PYTHON";
  try {
    const code = "import sys; print('%d.%d.%d %s' % (*sys.version_info[:3], sys.executable))";
    const { stdout } = await run(command, ["-c", code]);
    if (isTooOld(minorVersionOf({ version: stdout })))
      return { check, result: "fail", detail: stdout.trim(), cure };
    return { check, result: "ok", detail: stdout.trim() };
  } catch (error) {
    return { check, result: "fail", detail: `${command} does not run: ${firstLine(error)}`, cure };
  }
}

/** Checks what installs `requirements.txt` into an environment. */
async function installer(command: string): Promise<Finding> {
  const check = "packages";
  const uv = await run("uv", ["--version"]).catch(() => undefined);
  if (uv !== undefined) return { check, result: "ok", detail: uv.stdout.trim() };
  try {
    const { stdout } = await run(command, [
      "-c",
      "import ensurepip, pip, venv; print('venv and pip ' + pip.__version__)",
    ]);
    return { check, result: "ok", detail: stdout.trim() };
  } catch {
    return {
      check,
      result: "warn",
      detail: "neither uv nor venv with pip",
      cure: "projects with a requirements.txt need one: install uv, or your system's python3-venv and python3-pip",
    };
  }
}

function dataDirectory(path: string): Finding {
  const check = "data directory";
  let there = path;
  while (!existsSync(there)) there = dirname(there);
  try {
    accessSync(there, constants.W_OK);
  } catch {
    const cure = "make the user that runs Quern its owner, or name another directory with --data-dir";
    return { check, result: "fail", detail: `${path} cannot be written`, cure };
  }
  const { bavail, bsize } = statfsSync(there);
  const free = bavail * bsize;
  const detail = `${path}, ${(free / 1024 ** 3).toFixed(1)} GiB free`;
  if (free >= DISK_LEAST_BYTES) return { check, result: "ok", detail };
  return {
    check,
    result: "warn",
    detail,
    cure: "free disk space: `disk use` shows what takes it; a lower --keep-jobs keeps less",
  };
}

/** Checks whether the database belongs to its directory. A server refuses another one. */
async function database({ checkDatabase }: CliContext): Promise<Finding> {
  const found = await checkDatabase();
  return { check: "database", result: found.cure === undefined ? "ok" : "fail", ...found };
}

/** What each part of the data directory takes of the disk. It only sums up, because a million jobs have many files. */
async function diskUse(path: string): Promise<Finding> {
  const check = "disk use";
  const parts: Record<string, number> = {};
  for (const entry of existsSync(path) ? await readdir(path, { withFileTypes: true }) : []) {
    const part = entry.isDirectory() ? entry.name : "database";
    const bytes = entry.isDirectory()
      ? await directoryBytes(join(path, entry.name))
      : taken(join(path, entry.name));
    parts[part] = (parts[part] ?? 0) + bytes;
  }
  const total = Object.values(parts).reduce((sum, bytes) => sum + bytes, 0);
  const shown = Object.entries(parts)
    .filter(([, bytes]) => bytes > 0)
    .sort(([, a], [, b]) => b - a)
    .map(([part, bytes]) => `${part} ${size(bytes)}`);
  return { check, result: "ok", detail: `${size(total)}${shown.length > 0 ? `: ${shown.join(", ")}` : ""}` };
}

async function directoryBytes(path: string): Promise<number> {
  let bytes = taken(path);
  const directory = await opendir(path).catch(() => undefined);
  for await (const entry of directory ?? []) {
    const inside = join(path, entry.name);
    if (entry.isDirectory()) bytes += await directoryBytes(inside);
    else if (entry.isFile()) bytes += taken(inside);
  }
  return bytes;
}

/** The blocks of a file or directory: a file of ten bytes takes a whole one. Zero if it was removed meanwhile. */
function taken(path: string): number {
  const { blocks = 0, size = 0 } = statSync(path, { throwIfNoEntry: false }) ?? {};
  // Some file systems do not tell.
  return blocks > 0 ? blocks * BLOCK_BYTES : size;
}

async function openFiles(): Promise<Finding> {
  const check = "open files";
  const { stdout } = await run("sh", ["-c", "ulimit -n"]).catch(() => ({ stdout: "unknown" }));
  const limit = stdout.trim() === "unlimited" ? Number.POSITIVE_INFINITY : Number(stdout);
  if (!(limit < OPEN_FILES_LEAST)) return { check, result: "ok", detail: stdout.trim() };
  const cure =
    "each connection takes one; raise the limit with `ulimit -n 4096` or LimitNOFILE= in the service";
  return { check, result: "warn", detail: stdout.trim(), cure };
}

interface Health {
  compute: ComputeShown;
  memory_limits: MemoryLimits;
  warnings: string[];
}

async function server({ client, environment }: CliContext): Promise<Finding[]> {
  const check = "server";
  const where = `${environment} (${client.baseUrl})`;
  try {
    const { value } = await client.json<{ version: string }>("/-/version");
    const health = (await client.json<Health>("/-/healthz")).value;
    const found: Finding = { check, result: "ok", detail: `${where}, version ${value.version}` };
    return [found, compute(health.compute), memoryLimits(health.memory_limits), ...routes(health.warnings)];
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    const result = error.exitCode === EXIT.unreachable ? "warn" : "fail";
    const detail = error.code === "unhealthy" ? "needs a person" : "does not respond correctly";
    return [{ check, result, detail: `${where} ${detail}`, cure: error.message }];
  }
}

/** Problems of APIs that do not serve as they were deployed. */
function routes(warnings: readonly string[]): Finding[] {
  const cure =
    "this is a bug in Quern; meanwhile, deploy an earlier version (`quern rollback`) or other settings";
  return warnings.map((detail) => ({ check: "routes", result: "warn", detail, cure }));
}

/** The compute that can be reserved, with a warning if that is more than the machine has. */
function compute({ cpus, memory_bytes: memory }: ComputeShown): Finding {
  const check = "compute";
  const inWords = (number: number, bytes: number) => `${number} CPU and ${size(bytes)}`;
  const detail = `${inWords(cpus.total, memory.total)} to reserve, ${inWords(cpus.free, memory.free)} free`;
  const over = [
    ...(cpus.total > cpus.machine ? ["--cpus"] : []),
    ...(memory.total > memory.machine ? ["--memory"] : []),
  ];
  if (over.length === 0) return { check, result: "ok", detail };
  const slower = over.includes("--cpus")
    ? ["workers that are busy at the same time share the CPUs and become slower"]
    : [];
  const killed = over.includes("--memory") ? ["workers that use all their memory are killed"] : [];
  return {
    check,
    result: "warn",
    detail: `${detail}; the machine has ${inWords(cpus.machine, memory.machine)}`,
    cure: `${[...slower, ...killed].join("; ")}: lower ${over.join(" and ")} if that is not what you want`,
  };
}

/** How the server enforces `compute.mem`. */
function memoryLimits(by: MemoryLimits): Finding {
  const check = "memory limits";
  if (by === "kernel")
    return { check, result: "ok", detail: "the kernel enforces the compute.mem of each worker" };
  if (by === "none")
    return {
      check,
      result: "warn",
      detail: "compute.mem is not enforced on this system",
      cure: "run the server on Linux",
    };
  const detail = "the server finds workers over their compute.mem within 0.25 s";
  const cure =
    "to let the kernel enforce the limits, give the server its own control group (`Delegate=memory` in its systemd unit)";
  return { check, result: "ok", detail, cure };
}

function firstLine(error: unknown): string {
  return (error as Error).message.split("\n")[0]!;
}
