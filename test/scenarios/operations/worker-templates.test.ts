/** docs/decisions/0032-worker-templates.md: workers that a template forks are as those that start as a Python. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { processes } from "../../harness/processes.ts";
import { TestServer } from "../../harness/server.ts";
import type { ApiView } from "../../harness/views.ts";

const PREDICTOR = `
import gc, json, locale, os, resource, signal, sys, threading, time

def facts():
    shown = open("/proc/self/cmdline").read().rstrip("\\0").split("\\0")
    environment = dict(os.environ)
    url = environment.pop("QUERN_API_URL")
    return {
        "environment": environment, "url": url.rpartition("/")[0], "directory": os.getcwd(), "path": sys.path,
        "argv": [[a.rpartition("/")[0] for a in argv] for argv in (sys.argv, getattr(sys, "orig_argv", []))], "shown": [a.rpartition("/")[0] for a in shown],
        "flags": str(sys.flags), "modules": sorted(sys.modules), "main": sorted(vars(sys.modules["__main__"])),
        "files": sorted(os.path.dirname(os.path.dirname(os.readlink("/proc/self/fd/%s" % fd).partition(":")[0]))
                        for fd in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/%s" % fd)),
        "signals": {n: getattr(signal.getsignal(n), "__qualname__", str(signal.getsignal(n)))
                    for n in map(int, signal.valid_signals())},
        "blocked": [int(n) for n in signal.pthread_sigmask(signal.SIG_BLOCK, ())],
        "leads": [os.getsid(0) == os.getpid(), os.getpgrp() == os.getpid()], "umask": os.umask(0o077),
        "threads": threading.active_count(), "collects": gc.isenabled(), "locale": locale.setlocale(locale.LC_ALL),
        "limits": [resource.getrlimit(n) for n in range(16)], "streams": [type(s).__name__ for s in (sys.stdin, sys.stdout)],
        "killed_first": open("/proc/self/oom_score_adj").read(), "priority": os.getpriority(os.PRIO_PROCESS, 0),
    }

class PythonPredictor:
    def __init__(self, config):
        self.at = config.get("at")
    def predict(self, payload):
        print("predicts")
        if self.at is not None:
            with open(self.at, "w") as file:
                json.dump([os.getpid(), os.getppid(), facts()], file)
        time.sleep(payload[0])
`;
const REPLICA = `
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload): return payload
`;
const API = "- name: fact\n  kind: BatchAPI\n  predictor: {path: p.py}\n";

interface Seen {
  pid: number;
  parent: number;
  facts: object;
}

const server = new TestServer();
beforeAll(async () => {
  await server.start();
  server.deploy({ "quern.yaml": API, "p.py": PREDICTOR });
});
afterAll(() => server.stop());

const submit = (seconds: number, config: object = {}) =>
  server.submit("fact", { workers: 1, item_list: { items: [seconds], batch_size: 1 }, config });
const controller = () => server.child("controller");
const isTemplate = (command: string) => command.includes(" --template");
const templates = () =>
  processes()
    .filter(({ ppid, command }) => ppid === controller() && isTemplate(command))
    .map(({ pid }) => pid);
const parentOf = (pid: number) => processes().find((one) => one.pid === pid)?.ppid;
const commandOf = (pid: number) => processes().find((one) => one.pid === pid)?.command ?? "";
/** None while there is no controller. */
const ready = async () => {
  const { replicas = [] } = (await server.api("live")) as Partial<ApiView>;
  return replicas.filter(({ state }) => state === "ready").map(({ pid }) => pid);
};
/** Three are ready, and this one is none of them any more. */
const isReplaced = (pid: number) =>
  eventually(
    "another replica replaces it",
    async () => {
      const pids = await ready();
      return pids.length === 3 && !pids.includes(pid);
    },
    30_000,
  );
/** A replica that a template has forked. */
async function eventuallyForked(): Promise<number> {
  for (;;) {
    const pids = await ready();
    const found = pids.find((pid) => parentOf(pid) !== controller() && isTemplate(commandOf(parentOf(pid)!)));
    if (found !== undefined) return found;
    process.kill(pids[0]!, "SIGKILL");
    await isReplaced(pids[0]!);
  }
}
const works = (job: string) =>
  eventually("the job works", async () => server.cli(["logs", "fact", job]).out.includes("predicts"));

/** What one job's worker sees. */
async function seen(): Promise<Seen> {
  const file = join(server.inputs, "seen.json");
  const job = await submit(0, { at: file });
  expect((await server.ended("fact", job)).status).toBe("status_succeeded");
  const [pid, parent, facts] = JSON.parse(readFileSync(file, "utf8")) as [number, number, object];
  return { pid, parent, facts };
}

/** The first that is forked. */
async function forked(): Promise<Seen> {
  for (;;) {
    const one = await seen();
    if (one.parent !== controller()) return one;
  }
}

it("find everything as it is in the first worker of their version", async () => {
  const first = await seen();
  expect(first.parent).toBe(controller());
  const next = await forked();
  expect(next.facts).toEqual(first.facts);
  expect(next.pid).not.toBe(first.pid);
});

it("go on when their template is killed, and the next ones start without it", async () => {
  await forked();
  const job = await submit(3);
  await works(job);
  for (const pid of templates()) process.kill(pid, "SIGKILL");
  await seen();
  expect((await server.ended("fact", job)).status).toBe("status_succeeded");
});

it("are adopted by the next controller, and their template ends with the former one", async () => {
  const live = "- name: live\n  predictor: {path: p.py}\n  autoscaling: {min_replicas: 3, max_replicas: 3}\n";
  server.deploy({ "quern.yaml": live, "p.py": REPLICA });
  const [first] = await ready();
  process.kill(first!, "SIGKILL");
  await isReplaced(first!);
  const workers = await ready();
  const [forkedOne] = workers.filter((pid) => parentOf(pid) !== controller());
  expect(forkedOne).toBeDefined();

  const former = templates();
  process.kill(controller(), "SIGKILL");
  await eventually("the template ends", () => !former.some((pid) => isTemplate(commandOf(pid))));
  await eventually("the next controller knows all", async () => (await ready()).length === 3);
  expect(new Set(await ready())).toEqual(new Set(workers));
  process.kill(forkedOne!, "SIGKILL");
  await isReplaced(forkedOne!);
});

it("start, and are replaced when they die, although somebody has stopped their template", async () => {
  const forkedOne = await eventuallyForked();
  process.kill(parentOf(forkedOne)!, "SIGSTOP");
  process.kill(forkedOne, "SIGKILL");
  await isReplaced(forkedOne);
  await forked();
  for (const pid of templates()) process.kill(pid, "SIGSTOP");
  await seen();
}, 90_000);
