/** A copy of the checkout in a temporary directory: sources and what was built of them; packages and servers are links. */
import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { root } from "../setup.mjs";

const LINKED = ["node_modules", ".servers"];
const LEFT_OUT = new Set([...LINKED, ".git", ".bench", ".demo", ".stryker", "shared"]);
const BUILD_MS = 120_000;
const TSC = ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"];
const BUNDLE = ["scripts/bundle.mjs", "src"];
/** What a test runs besides the sources, by the beginning of its path: the modules of `dist/`, or the bundle. */
const BUILT = { "test/hostile/boundaries": TSC, "test/hostile/": BUNDLE, "test/scenarios/": BUNDLE };

export function makeCopy() {
  const directory = mkdtempSync(join(realpathSync(tmpdir()), "quern-mutation-"));
  for (const name of readdirSync(root)) {
    if (!LEFT_OUT.has(name)) cpSync(join(root, name), join(directory, name), { recursive: true });
  }
  for (const name of LINKED) {
    if (existsSync(join(root, name))) symlinkSync(realpathSync(join(root, name)), join(directory, name));
  }
  return {
    directory,
    apply: (file) => apply(directory, file),
    build: (touches, tests) => build(directory, touches, tests),
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

function apply(directory, file) {
  // Inside a repository, git would leave out files that the repository does not track.
  const env = { ...process.env, GIT_CEILING_DIRECTORIES: dirname(directory), GIT_DIR: undefined };
  const { status, stderr, error } = spawnSync("git", ["apply", "--whitespace=nowarn", file], {
    cwd: directory,
    env,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`the patch does not apply: ${error?.message ?? stderr.trim()}`);
}

/** Builds only what the tests run of it. Python needs no build, and Vitest runs the sources. */
async function build(directory, touches, tests) {
  if (touches.some((file) => file.startsWith("assembly/")))
    await run(directory, ["node_modules/assemblyscript/bin/asc.js"]);
  if (!touches.some((file) => file.startsWith("src/"))) return;
  for (const args of new Set(tests.map(builtFor))) if (args !== undefined) await run(directory, args);
}

function builtFor(test) {
  const [, args] = Object.entries(BUILT).find(([beginning]) => test.startsWith(beginning)) ?? [];
  return args;
}

function run(directory, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { cwd: directory, timeout: BUILD_MS });
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += text));
    child.once("error", reject);
    child.once("close", (code, signal) =>
      code === 0
        ? resolve()
        : reject(new Error(`the broken code does not build (${code ?? signal}): ${said}`)),
    );
  });
}
