/**
 * The images of the test's cluster, made of this machine's own Python and programs, because no registry can be reached:
 * the same contents as `deploy/Dockerfile` gives, by other means.
 */
import { execFileSync, spawnSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { root, run } from "../setup.mjs";
import { writeImage } from "./oci.mjs";

/** What the containers' commands and users of `kubectl exec` need. */
const PROGRAMS = ["cat", "chmod", "dash", "env", "id", "kill", "ls", "mkdir", "mv", "rm", "sleep", "tini"];
const NODE = "node@24";
/** Big, and of no use there. */
const LEFT_OUT =
  /\/(test|tests|idlelib|tkinter|ensurepip|site-packages|dist-packages|__pycache__|config-[^/]*)$/;

/** Resolves to the archives: that of the first process of each pod, Quern's, and that of workers. */
export function buildImages(directory) {
  const quern = join(directory, "quern");
  copyPrograms(quern);
  copyPython(quern);
  installQuern(quern, directory);
  writeFileSync(
    join(made(join(quern, "etc")), "passwd"),
    "root:x:0:0::/:/bin/sh\nnode:x:1000:1000::/tmp:/bin/sh\n",
  );
  mkdirSync(join(quern, "tmp"), { mode: 0o777 });
  const worker = workerFiles(directory);
  const pause = made(join(directory, "pause"));
  run("gcc", ["-Os", "-static", "-s", "-o", join(pause, "pause"), join(root, "test", "cluster", "pause.c")]);
  const images = [
    { name: "quern.test/pause", files: pause, entrypoint: ["/pause"] },
    { name: "quern.test/quern", files: quern, entrypoint: ["tini", "--", "quern"], user: "1000:1000" },
    {
      ...{ name: "quern.test/worker", files: worker, entrypoint: ["python3", "-m", "quern_launcher"] },
      ...{ user: "1000:1000", directory: "/opt/quern" },
    },
  ];
  return images.map((image) => {
    const file = writeImage(`${image.files}.tar`, { ...image, tag: "1" });
    rmSync(image.files, { recursive: true });
    return file;
  });
}

/** The same contents as `deploy/worker.Dockerfile` gives. */
function workerFiles(directory) {
  const worker = join(directory, "worker");
  copyPrograms(worker);
  copyPython(worker);
  copyPip(worker);
  for (const name of ["quern_runtime", "quern_launcher"])
    cpSync(join(root, "python", name), join(worker, "opt", "quern", name), {
      recursive: true,
      filter: (source) => !LEFT_OUT.test(source),
    });
  mkdirSync(join(worker, "tmp"), { mode: 0o777 });
  return worker;
}

function copyPrograms(files) {
  const bin = made(join(files, "usr", "bin"));
  symlinkSync("usr/bin", join(files, "bin"));
  for (const program of PROGRAMS) {
    const file = execFileSync("which", [program], { encoding: "utf8" }).trim();
    copyFileSync(file, join(bin, program));
    copyLibraries(files, file);
  }
  symlinkSync("dash", join(bin, "sh"));
}

function copyPython(files) {
  const script =
    "import sys, sysconfig; print(sys.base_prefix, sys.version_info[1], sysconfig.get_path('stdlib'), sep='\\n')";
  const [prefix, minor, library] = execFileSync(process.env.QUERN_PYTHON ?? "python3", ["-c", script], {
    encoding: "utf8",
  }).split("\n");
  const program = join(prefix, "bin", `python3.${minor}`);
  copyFileSync(program, join(made(join(files, dirname(program))), `python3.${minor}`));
  copyLibraries(files, program);
  const parts = join(library, "lib-dynload");
  for (const name of readdirSync(parts)) copyLibraries(files, join(parts, name));
  cpSync(library, join(files, library), {
    recursive: true,
    verbatimSymlinks: true,
    filter: (source) => !LEFT_OUT.test(source),
  });
  symlinkSync(program, join(files, "usr", "bin", "python3"));
}

/** What installs requirements. It stays where Python looks for it. */
function copyPip(files) {
  const script = "import os, pip; print(os.path.dirname(pip.__file__))";
  const python = process.env.QUERN_PYTHON ?? "python3";
  const pip = execFileSync(python, ["-c", script], { encoding: "utf8" }).trim();
  cpSync(pip, join(files, pip), { recursive: true, filter: (source) => !source.endsWith("__pycache__") });
}

/** The shared libraries that a program needs, at the same paths. */
function copyLibraries(files, program) {
  const { stdout } = spawnSync("ldd", [program], { encoding: "utf8" });
  for (const [library] of stdout.matchAll(/\/\S+\.so\S*/g)) {
    const copy = join(files, library);
    if (existsSync(copy)) continue;
    made(dirname(copy));
    copyFileSync(library, copy);
  }
}

/** The package as a user gets it, with a Node that has SQLite. */
function installQuern(files, directory) {
  const home = made(join(files, "opt", "quern"));
  writeFileSync(join(home, "package.json"), "{}\n");
  const packed = execFileSync("npm", ["pack", "--silent", "--pack-destination", directory], {
    cwd: root,
    encoding: "utf8",
  });
  const tarball = join(directory, packed.trim().split("\n").pop());
  // A compiler that fails: the optional SQLite for older Nodes must not be needed.
  const env = { ...process.env, CC: "false", CXX: "false" };
  const options = ["--no-audit", "--no-fund", "--loglevel=error"];
  const { peerDependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const clients = Object.entries(peerDependencies).map(([name, range]) => `${name}@${range}`);
  run("npm", ["install", ...options, NODE, tarball, ...clients], { cwd: home, env });
  const bin = made(join(files, "usr", "local", "bin"));
  const node = execFileSync("find", [home, "-path", "*bin/node", "-type", "f"], { encoding: "utf8" }).split(
    "\n",
  )[0];
  copyLibraries(files, node);
  const quern = "/opt/quern/node_modules/quern/bin/quern";
  writeFileSync(join(bin, "quern"), `#!/bin/sh\nexec ${node.slice(files.length)} ${quern} "$@"\n`, {
    mode: 0o755,
  });
}

function made(directory) {
  mkdirSync(directory, { recursive: true });
  return directory;
}
