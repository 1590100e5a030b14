/**
 * Adds to package-lock.json the binaries of other platforms that a registry in use does not have: `npm ci` refuses a lock
 * file without them, and an npm on such a platform installs them by name and version. Run after `npm install PACKAGE`.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./setup.mjs";

const SYSTEMS = ["android", "darwin", "freebsd", "linux", "openharmony", "win32"];
const LIBRARIES = { musl: "musl", musleabihf: "musl", gnu: "glibc", gnueabihf: "glibc" };

const path = join(root, "package-lock.json");
const lock = JSON.parse(readFileSync(path, "utf8"));
for (const { dev, optionalDependencies = {} } of Object.values(lock.packages)) {
  for (const [name, version] of Object.entries(optionalDependencies))
    lock.packages[`node_modules/${name}`] ??= binary(name, version, dev);
}
const [whole, ...others] = Object.entries(lock.packages);
lock.packages = Object.fromEntries([whole, ...others.sort(([a], [b]) => (a < b ? -1 : 1))]);
writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`);

/** `@biomejs/cli-linux-x64-musl`: what it runs on is in its name. */
function binary(name, version, dev) {
  const words = name.split("/").at(-1).split("-");
  const at = words.findIndex((word) => SYSTEMS.includes(word));
  if (at < 0 || !/^\d/.test(version)) throw new Error(`${name}@${version} is not a binary of one platform`);
  const libc = LIBRARIES[words.at(-1)];
  return {
    version,
    cpu: [words[at + 1]],
    ...(dev ? { dev } : {}),
    ...(libc === undefined ? {} : { libc: [libc] }),
    optional: true,
    os: [words[at]],
  };
}
