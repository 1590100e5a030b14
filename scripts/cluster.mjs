/**
 * `npm run test:cluster [-- ARGUMENT ...]`: starts a Kubernetes of two nodes on this machine, with real kubelets and
 * pods, and runs the tests in test/cluster/ against it. Everything is in network namespaces of its own. Arguments
 * choose among the tests. Needs Linux, root, a few Debian packages and Go; says what is missing, and skips then.
 *
 * Ends with `N passed, N failed, N skipped`.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildImages } from "./cluster/image.mjs";
import { kubernetesPrograms, missingModules } from "./cluster/kubernetes.mjs";
import { root, run, setUp } from "./setup.mjs";

const CLUSTER = join(root, "test", "cluster");
const CONTROL_PLANE = "/var/run/netns/quern-cp";
/** Programs, and the Debian packages that have them. */
const PROGRAMS = {
  conntrack: "conntrack",
  containerd: "containerd",
  etcd: "etcd-server",
  gcc: "gcc libc6-dev",
  go: "golang-go (1.24 or later)",
  ip: "iproute2",
  iptables: "iptables",
  nsenter: "util-linux",
  openssl: "openssl",
  runc: "runc",
  tini: "tini",
};

/** What this machine lacks, in a sentence; undefined if it lacks nothing. */
function missing() {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "root on Linux";
  if (!existsSync("/sys/fs/cgroup/memory/cgroup.procs")) return "control groups of version 1 with memory";
  if (spawnSync("unshare", ["-nm", "true"]).status !== 0) return "the right to make namespaces";
  if (!existsSync("/usr/lib/cni/bridge")) return "containernetworking-plugins, a Debian package";
  const lacking = Object.keys(PROGRAMS).filter((name) => spawnSync("which", [name]).status !== 0);
  if (lacking.length > 0) return `${lacking.map((name) => PROGRAMS[name]).join(", ")} (Debian packages)`;
  return existsSync(CONTROL_PLANE) ? `a network of its own: ${CONTROL_PLANE} is there already` : undefined;
}

function cluster(script, env) {
  return spawnSync("bash", [join(CLUSTER, script)], { stdio: "inherit", env: { ...process.env, ...env } })
    .status;
}

/** The tests run in the network namespace of the control plane: from outside there is no way to the cluster. */
function runTests(env) {
  const command = [join(root, "scripts", "test.mjs"), "--cluster", ...process.argv.slice(2)];
  const { status } = spawnSync("nsenter", [`--net=${CONTROL_PLANE}`, "--", process.execPath, ...command], {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ...env },
  });
  return status ?? 1;
}

function testOn(directory) {
  const BIN = kubernetesPrograms();
  const RUN = join(directory, "run");
  console.log("building the images ...");
  const images = buildImages(directory);
  const env = { BIN, RUN, IMAGES: images.join(" ") };
  try {
    if (cluster("up.sh", env) !== 0) {
      run("sh", ["-c", `tail -n 20 ${RUN}/logs/*.log`]);
      return 1;
    }
    return runTests({ QUERN_TEST_CLUSTER: RUN, PATH: `${BIN}:${process.env.PATH}` });
  } finally {
    cluster("down.sh", env);
  }
}

const lacking = missing() ?? missingModules();
if (lacking !== undefined) {
  console.log(`this machine lacks ${lacking}\n\n0 passed, 0 failed, 1 skipped`);
} else {
  setUp();
  const directory = mkdtempSync(join(tmpdir(), "quern-cluster-"));
  try {
    process.exitCode = testOn(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
