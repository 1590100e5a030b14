/** Builds Kubernetes from its Go modules: all its programs in one. There are no packages of it to install. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, symlinkSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { root, run } from "../setup.mjs";

const SOURCES = join(root, "test", "cluster", "kubernetes");
const VERSION = { major: "1", minor: "34", patch: "4" };
const PROGRAMS = [
  ...["kube-apiserver", "kube-controller-manager", "kube-scheduler"],
  ...["kubelet", "kube-proxy", "kubectl"],
];

/** The directory of its programs. The first build takes about eight minutes; it is kept for the next time. */
export function kubernetesPrograms() {
  const directory = built();
  if (existsSync(directory)) return directory;
  console.log("building Kubernetes, once (about eight minutes) ...");
  const building = `${directory}.${process.pid}`;
  mkdirSync(building, { recursive: true });
  build(join(building, "kubernetes"));
  for (const program of PROGRAMS) symlinkSync("kubernetes", join(building, program));
  renameSync(building, directory);
  return directory;
}

function built() {
  return join(homedir(), ".cache", "quern-test", `kubernetes-${hashOfSources()}`);
}

/** What keeps its modules from being downloaded, in a sentence; undefined if it is built, or they are there. */
export function missingModules() {
  if (existsSync(built())) return undefined;
  console.log("downloading the modules of Kubernetes ...");
  const { status, stderr } = spawnSync("go", ["mod", "download"], { cwd: SOURCES, encoding: "utf8" });
  return status === 0 ? undefined : `the Go modules of Kubernetes: ${stderr.trim().split("\n").at(-1)}`;
}

function hashOfSources() {
  const hash = createHash("sha256");
  for (const name of ["go.mod", "go.sum", "main.go"]) hash.update(readFileSync(join(SOURCES, name)));
  return hash.digest("hex").slice(0, 16);
}

function build(file) {
  const { major, minor, patch } = VERSION;
  // Without these the programs say that they are version 0.0.0.
  const variables = [
    `k8s.io/component-base/version.gitVersion=v${major}.${minor}.${patch}`,
    `k8s.io/component-base/version.gitMajor=${major}`,
    `k8s.io/component-base/version.gitMinor=${minor}`,
    `k8s.io/client-go/pkg/version.gitVersion=v${major}.${minor}.${patch}`,
  ];
  const flags = ["-s", "-w", ...variables.map((variable) => `-X ${variable}`)].join(" ");
  run("go", ["build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", file, "."], {
    cwd: SOURCES,
    env: { ...process.env, CGO_ENABLED: "0" },
  });
}
