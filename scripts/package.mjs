/**
 * The package as a user gets it: packed, installed into an empty directory, and the demo run from there. Fails when it
 * brings more than PACKAGES_MAX packages. Meant for a Node with its own SQLite: nothing is compiled.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root, setUp } from "./setup.mjs";

/** Each package is one more that a user must trust. The limit leaves room for S3 and SQS. */
const PACKAGES_MAX = 110;

setUp();
const work = mkdtempSync(join(tmpdir(), "quern-package-"));
try {
  const packed = execFileSync("npm", ["pack", "--silent", "--pack-destination", work], {
    cwd: root,
    encoding: "utf8",
  });
  const tarball = join(work, packed.trim().split("\n").pop());
  const directory = join(work, "empty");
  writeEmptyProject(directory);
  console.log("installing the package into an empty directory ...");
  // A compiler that fails: the optional SQLite for older Nodes must not be needed.
  const env = { ...process.env, CC: "false", CXX: "false" };
  execFileSync("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error", tarball], {
    cwd: directory,
    env,
    stdio: "inherit",
  });
  const packages = countPackages(join(directory, "node_modules"));
  console.log(`${packages} packages`);
  if (packages > PACKAGES_MAX) throw new Error(`more than ${PACKAGES_MAX} packages`);
  const home = join(directory, "node_modules", "quern");
  const { status } = spawnSync(process.execPath, [join(root, "scripts", "demo.mjs"), home], {
    stdio: "inherit",
    cwd: directory,
  });
  process.exitCode = status ?? 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}

function writeEmptyProject(directory) {
  mkdirSync(directory);
  writeFileSync(join(directory, "package.json"), "{}\n");
}

function countPackages(modules) {
  return readdirSync(modules, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith("."))
    .reduce((sum, { name }) => {
      if (name.startsWith("@")) return sum + countPackages(join(modules, name));
      const nested = join(modules, name, "node_modules");
      return (
        sum + 1 + (readdirSync(join(modules, name)).includes("node_modules") ? countPackages(nested) : 0)
      );
    }, 0);
}
