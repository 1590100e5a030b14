/**
 * Installs and builds what is missing, and nothing else: dependencies when the lock file is newer than what is
 * installed, SQLite's driver if this Node has none of its own, `dist/` when a source is newer. Needs no package.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Runs a command in the checkout; ends this process when it fails. */
export function run(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: root, stdio: "inherit", ...options });
  if (result.status === 0) return;
  console.error(`failed: ${command} ${args.join(" ")}${result.error ? ` (${result.error.message})` : ""}`);
  process.exit(result.status ?? 1);
}

function assertVersions() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major < 20 || (major === 20 && minor < 12))
    fail(`Node 20.12 or later is needed, this is ${process.version}`);
  const python = spawnSync(process.env.QUERN_PYTHON ?? "python3", [
    "-c",
    "import sys; sys.exit(sys.version_info < (3, 9))",
  ]);
  if (python.status !== 0) fail("Python 3.9 or later is needed as python3; name another with QUERN_PYTHON");
}

function fail(message) {
  console.error(message);
  process.exit(1);
}

function installPackages() {
  const stamp = join(root, "node_modules", ".quern-installed");
  const lock = join(root, "package-lock.json");
  if (existsSync(stamp) && statSync(stamp).mtimeMs >= statSync(lock).mtimeMs) return;
  console.error("installing packages ...");
  run("npm", ["ci", "--ignore-scripts", "--no-fund", "--no-audit", "--loglevel=error"], {
    stdio: ["ignore", 2, 2],
  });
  writeFileSync(stamp, "");
}

/** Node 22.13 and later have SQLite; before that better-sqlite3 is compiled, which takes under a minute. */
function buildSqlite() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 22 || (major === 22 && minor >= 13)) return;
  const script = "new (require('better-sqlite3'))(':memory:')";
  if (spawnSync(process.execPath, ["-e", script], { cwd: root, stdio: "ignore" }).status === 0) return;
  console.error("compiling SQLite for this Node (under a minute) ...");
  run("npm", ["rebuild", "better-sqlite3", "--loglevel=error"], { stdio: ["ignore", 2, 2] });
}

function newestMtime(directory) {
  return Math.max(
    ...readdirSync(directory, { withFileTypes: true }).map((entry) => {
      const path = join(directory, entry.name);
      return entry.isDirectory() ? newestMtime(path) : statSync(path).mtimeMs;
    }),
  );
}

function build() {
  const stamp = join(root, "dist", ".built");
  const sources = Math.max(
    newestMtime(join(root, "src")),
    newestMtime(join(root, "assembly")),
    statSync(join(root, "asconfig.json")).mtimeMs,
    statSync(join(root, "tsconfig.json")).mtimeMs,
    statSync(join(root, "package-lock.json")).mtimeMs,
  );
  if (existsSync(stamp) && statSync(stamp).mtimeMs >= sources) return;
  console.error("building ...");
  const packages = createRequire(join(root, "package.json"));
  const bin = (name, ...path) => join(dirname(packages.resolve(`${name}/package.json`)), "bin", ...path);
  run(process.execPath, [bin("typescript", "tsc"), "-p", "tsconfig.build.json"]);
  run(process.execPath, [bin("assemblyscript", "asc.js")]);
  run(process.execPath, [join(root, "scripts", "bundle.mjs")]);
  run(process.execPath, [join(root, "scripts", "dashboard.mjs")]);
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, "");
  utimesSync(stamp, new Date(), new Date());
}

export function setUp() {
  assertVersions();
  installPackages();
  buildSqlite();
  build();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) setUp();
