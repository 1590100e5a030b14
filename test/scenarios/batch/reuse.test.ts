/** docs/contract/predictor.md#reuse: jobs of one version that share a worker process. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { TestServer } from "../../harness/server.ts";

const PREDICTOR = `
import os, threading
JOBS = []
class PythonPredictor:
    def __init__(self, config, job_spec):
        JOBS.append(job_spec["job_id"])
        self.config, self.job, self.batches = config, job_spec["job_id"], 0
        print("made for", config.get("name"), flush=True)
        if config.get("once") and len(JOBS) > 1: raise ValueError("only once in a process")
        if config.get("never"): raise ValueError("never")
    def predict(self, payload):
        self.batches += 1
        return [[os.getpid(), self.job, self.config.get("name"), self.batches, len(JOBS)] for _ in payload]
    def on_job_complete(self):
        print("completed", self.config.get("name"), flush=True)
`;
/** Every descriptor is in use when its first job ends. */
const DEAF = `
import os, resource
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload):
        return [[os.getpid()] for _ in payload]
    def on_job_complete(self):
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
`;
/** Predicts what its process was like when the object was made, and changes it. */
const RESTORED = `
import os, signal, sys, weakref
def state():
    umask = os.umask(0o22)
    os.umask(umask)
    return [os.getpid(), os.getcwd(), os.environ.get("LEFT"), os.environ.get("HOME"), umask, "left" in sys.path,
            str(signal.getsignal(signal.SIGALRM)), str(signal.getsignal(signal.SIGTERM)), signal.getitimer(signal.ITIMER_REAL),
            sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ()))]
ALIVE = weakref.WeakSet()
class PythonPredictor:
    def __init__(self, config):
        self.state = [*state(), len(ALIVE)]
        self.itself = self
        ALIVE.add(self)
    def predict(self, payload):
        return [self.state for _ in payload]
    def on_job_complete(self):
        os.chdir("/")
        os.environ["LEFT"] = "x"
        del os.environ["HOME"]
        os.umask(0o777)
        sys.path.append("left")
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 3600)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
`;
/** Never goes. */
const STUCK = `
import os, time
class PythonPredictor:
    def __init__(self, config, job_spec): self.job = job_spec["job_id"]
    def predict(self, payload): return [[os.getpid(), self.job, "", 1, 1] for _ in payload]
    def __del__(self): time.sleep(600)
`;
type Row = [pid: number, job: string, name: string, batches: number, jobs: number];

const server = new TestServer();
beforeAll(() => server.start({}, ["--cpus", "1"]));
afterAll(() => server.stop());

function deploy(api: string, predictor = "reuse_worker: true", text = PREDICTOR): void {
  server.deploy({
    "quern.yaml": `- name: ${api}\n  kind: BatchAPI\n  predictor: {path: p.py, ${predictor}}\n`,
    "p.py": text,
  });
}

async function run(api: string, config: object, more: object = {}): Promise<{ job: string; rows: Row[] }> {
  const items = { items: [1, 2, 3, 4], batch_size: 2 };
  const job = await server.submit(api, { workers: 1, item_list: items, output: {}, config, ...more });
  expect(await server.ended(api, job)).toMatchObject({ status: "status_succeeded" });
  return { job, rows: await rowsOf(api, job) };
}

async function rowsOf(api: string, job: string): Promise<Row[]> {
  const text = await (await server.fetch(`/${api}/${job}/results`)).text();
  return text
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { prediction: Row }).prediction);
}

describe("a worker of an API with reuse_worker", () => {
  it("goes on with the next job: a new predictor, the job's own configuration and log", async () => {
    deploy("shared");
    const first = await run("shared", { name: "one" });
    const second = await run("shared", { name: "two" });
    const [pid] = first.rows[0]!;
    expect(first.rows).toEqual([1, 1, 2, 2].map((batch) => [pid, first.job, "one", batch, 1]));
    expect(second.rows).toEqual([1, 1, 2, 2].map((batch) => [pid, second.job, "two", batch, 2]));
    const log = server.cli(["logs", "shared", second.job]).out;
    expect(log).toContain("made for two");
    expect(log).toContain("completed two");
    expect(log).not.toContain("one");
    expect(server.cli(["logs", "shared", first.job]).out).not.toContain("two");
  });

  it("has no successor in its process without the setting, or for another version", async () => {
    deploy("apart", "config: {}");
    const pids = [await run("apart", {}), await run("apart", {})].map(({ rows }) => rows[0]![0]);
    expect(new Set(pids).size).toBe(2);
    deploy("apart");
    const before = await run("apart", {});
    deploy("apart", "reuse_worker: true, config: {name: new}");
    const after = await run("apart", {});
    expect(after.rows[0]![0]).not.toBe(before.rows[0]![0]);
    expect(after.rows[0]![2]).toBe("new");
  });

  it("that cannot be set up again is replaced by a new one; a job whose predictor never can ends", async () => {
    deploy("once", "reuse_worker: true, config: {once: true}");
    const first = await run("once", {});
    const second = await run("once", {});
    expect(second.rows[0]![0]).not.toBe(first.rows[0]![0]);
    expect(server.cli(["logs", "once", second.job]).out).toMatch(
      /worker \S+, which has worked for other jobs, could not be set up for this one \(ValueError: only once/,
    );
    const items = { items: [1], batch_size: 1 };
    const job = await server.submit("once", { workers: 1, item_list: items, config: { never: true } });
    expect(await server.ended("once", job)).toMatchObject({ status: "status_worker_error" });
  });

  it("that a former job has left unable to reply is replaced by a new one", async () => {
    deploy("deaf", "reuse_worker: true", DEAF);
    const first = await run("deaf", {});
    const second = await run("deaf", {});
    expect(second.rows[0]![0]).not.toBe(first.rows[0]![0]);
    expect(server.cli(["logs", "deaf", second.job]).out).toMatch(
      /could not be set up for this one \(NoReply: the process did not reply within 5 s\); a new one starts/,
    );
  });

  it("whose former predictor does not go is replaced by a new one, and the log says where it hangs", async () => {
    deploy("stuck", "reuse_worker: true", STUCK);
    const first = await run("stuck", {});
    const second = await run("stuck", {});
    expect(second.rows[0]![0]).not.toBe(first.rows[0]![0]);
    const log = server.cli(["logs", "stuck", second.job]).out;
    expect(log).toMatch(/p\.py", line \d+ in __del__/);
    expect(log).toMatch(
      /has worked for other jobs, could not be set up .* exited with code 1 .*; a new one starts/,
    );
  });

  it("has its directory, environment, umask, signals and timers as before the former job, whose object is gone", async () => {
    deploy("restored", "reuse_worker: true", RESTORED);
    const first = await run("restored", {});
    const second = await run("restored", {});
    expect(second.rows[0]).toEqual(first.rows[0]);
  });

  it("takes predictor.max_requests batches over all its jobs", async () => {
    deploy("worn", "reuse_worker: true, max_requests: 4");
    const runs = [await run("worn", {}), await run("worn", {}), await run("worn", {})];
    const [a, b, c] = runs.map(({ rows }) => rows.at(-1)![0]);
    expect(b).toBe(a);
    expect(c).not.toBe(b);
  });

  it("that is killed between two jobs costs neither anything", async () => {
    deploy("killed");
    const first = await run("killed", {});
    process.kill(first.rows[0]![0], "SIGKILL");
    const second = await run("killed", {});
    expect(second.rows[0]![4]).toBe(1);
  });

  it("ends when others need its compute, when its API is deleted, and with its controller", async () => {
    const all = "reuse_worker: true}\n  compute: {cpu: 1";
    deploy("leaves", all);
    deploy("other", "config: {}}\n  compute: {cpu: 1");
    const gone = ({ rows }: { rows: Row[] }) =>
      eventually("the worker has ended", async () => !isAlive(rows[0]![0]), 15_000);
    const first = await run("leaves", {});
    expect(isAlive(first.rows[0]![0])).toBe(true);
    await run("other", {});
    await gone(first);
    const second = await run("leaves", {});
    server.cli(["delete", "-y", "leaves"]);
    await gone(second);
    deploy("leaves", all);
    const third = await run("leaves", {});
    process.kill(server.child("controller"), "SIGKILL");
    await gone(third);
    await eventually("another controller serves", async () => "api_id" in (await server.api("leaves")));
    expect((await run("leaves", {})).rows[0]![4]).toBe(1);
  });
});

function isAlive(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}
