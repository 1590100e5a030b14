/** deploy/worker.Dockerfile, without a registry: its files, its user and its command, on a root that is read-only. */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { LaunchedPod, type PodCommand, ProjectServer } from "../harness/launched-pod.ts";
import { root } from "../harness/server.ts";

const PYTHON = "/usr/bin/python3";
const lines = readFileSync(join(root, "deploy", "worker.Dockerfile"), "utf8").split("\n");
const image = mkdtempSync(join(tmpdir(), "quern-image-"));
afterAll(() => rmSync(image, { recursive: true }));

/** A mount namespace needs root, and the other user needs a Python that it may run. */
const mayRun =
  process.getuid?.() === 0 && existsSync(PYTHON) && spawnSync("unshare", ["-m", "true"]).status === 0;

/** All that the pod may write is its own directory. */
function inImage(directory: string, user: string): PodCommand {
  for (const line of lines) {
    const [, from] = /^COPY (\S+) \S+$/.exec(line) ?? [];
    if (from !== undefined) cpSync(join(root, from), join(image, basename(from)), { recursive: true });
  }
  execFileSync("chmod", ["-R", "a+rX", image]);
  for (const name of ["run", "tmp"]) mkdirSync(join(directory, name));
  execFileSync("chown", ["-R", `${user}:${user}`, directory]);
  const privileges = "--clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all";
  const steps = [
    `mount --bind ${directory} ${directory}`,
    "mount -o remount,bind,ro /",
    `exec setpriv --reuid ${user} --regid ${user} ${privileges} ${PYTHON} -m quern_launcher`,
  ];
  return { command: "unshare", args: ["-m", "sh", "-c", steps.join(" && ")], cwd: image };
}

it.runIf(mayRun)(
  "the worker's image runs without root, rights, and a root file system to write to",
  async () => {
    const user = /^USER (\d+):\1$/.exec(lines.findLast((line) => line.startsWith("USER"))!)![1]!;
    expect(lines.findLast((line) => line.startsWith("CMD"))).toBe('CMD ["python3", "-m", "quern_launcher"]');
    const projects = await ProjectServer.start();
    const files = {
      "predictor.py": "class PythonPredictor: pass",
      "dependencies.sh": 'id -u; touch "$HOME/x"; touch /etc/x && exit 1; echo done',
    };
    const pod = await LaunchedPod.start(
      projects.url(await projects.add(files)),
      { HOME: "/nowhere", TMPDIR: "/nowhere" },
      undefined,
      (directory) => inImage(directory, user),
    );
    try {
      await pod.untilReadiness(/^503 starting/);
      expect(pod.output).toMatch(new RegExp(`^${user}\n[\\s\\S]*/etc/x.*Read-only file system\ndone$`, "m"));
    } finally {
      await pod.stop();
      projects.stop();
    }
  },
);
