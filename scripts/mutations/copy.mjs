/** A copy of the checkout in a temporary directory: sources and what was built of them; packages and servers are links. */
import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { root } from "../setup.mjs";

const LINKED = ["node_modules", ".servers"];
const LEFT_OUT = new Set([...LINKED, ".git", ".bench", ".demo", ".stryker", "shared"]);
const INCREMENTAL = ["--incremental", "--tsBuildInfoFile", ".tsbuildinfo"];
const BUILD_MS = 120_000;

/** The unbroken one, built so that a copy of it builds what was changed only. */
export async function makeOriginal() {
  const original = makeCopy(root);
  await original.build(["src/"]);
  return original;
}

export function makeCopy(from) {
  const directory = mkdtempSync(join(realpathSync(tmpdir()), "quern-mutation-"));
  for (const name of readdirSync(from)) {
    if (!LEFT_OUT.has(name)) cpSync(join(from, name), join(directory, name), { recursive: true });
  }
  for (const name of LINKED) {
    if (existsSync(join(from, name))) symlinkSync(realpathSync(join(from, name)), join(directory, name));
  }
  return {
    directory,
    apply: (file) => apply(directory, file),
    build: (touches) => build(directory, touches),
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

/** Python needs no build. */
async function build(directory, touches) {
  if (touches.some((file) => file.startsWith("src/")))
    await run(directory, ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json", ...INCREMENTAL]);
  if (touches.some((file) => file.startsWith("src/"))) await run(directory, ["scripts/bundle.mjs"]);
  if (touches.some((file) => file.startsWith("assembly/")))
    await run(directory, ["node_modules/assemblyscript/bin/asc.js"]);
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
