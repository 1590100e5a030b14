/** The server itself: its data directory, environments, updates, restarts. */

import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { ITEMS_STORED_BYTES_MAX } from "../../../src/contracts/limits/submissions.ts";
import { isOnSqlite } from "../../harness/databases.ts";
import { eventually } from "../../harness/eventually.ts";
import { BACKEND, PYPROJECT } from "../../harness/local-package.ts";
import { killAll } from "../../harness/processes.ts";
import { ECHO, OBEDIENT, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

/** Predicts what it got beside the payload, after so many seconds. */
const CAREFUL = `
import time
class PythonPredictor:
    def __init__(self, config): pass
    def predict(self, payload, query_params, headers):
        if payload: print("busy", flush=True)
        time.sleep(payload)
        return [query_params["tenant"], headers["x-tenant"]]
`;

describe("a server", () => {
  let server: TestServer;
  afterEach(() => server.stop());

  it("keeps its data private: directory 0700, token and database 0600", async () => {
    server = new TestServer();
    await server.start();
    const databases = isOnSqlite ? ["quern.db", "quern.db-wal"] : [];
    const modes = () => databases.map((name) => statSync(join(server.dataDir, name)).mode & 0o777);
    expect(modes()).toEqual(databases.map(() => 0o600));
    // As a former release left it.
    await server.stopProcesses();
    for (const name of databases.slice(0, 1)) chmodSync(join(server.dataDir, name), 0o644);
    await server.start();
    expect(modes()).toEqual(databases.map(() => 0o600));
    expect(statSync(server.dataDir).mode & 0o777).toBe(0o700);
    expect(statSync(join(server.dataDir, "admin-token")).mode & 0o777).toBe(0o600);
  });

  it("prints its address on standard error once it accepts requests", async () => {
    server = new TestServer();
    await server.start();
    await eventually("the line", () => server.stderr.includes(`quern is ready at ${server.baseUrl}\n`));
  });

  it("shows the state of each API to an admin only", async () => {
    server = new TestServer();
    await server.start();
    server.deploy(project(ECHO));
    expect((await server.fetch("/-/healthz")).status).toBe(401);
    const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
    const health = await server.fetch("/-/healthz", { headers: { authorization: `Bearer ${token}` } });
    expect(await health.json()).toMatchObject({
      status: "ok",
      apis: [
        { name: "echo", kind: "RealtimeAPI", status: "live" },
        { name: "jobs", kind: "BatchAPI", status: "live" },
      ],
    });
  });

  it("may reserve more CPUs and memory than the machine has", async () => {
    server = new TestServer();
    await server.start({}, ["--cpus", "5000", "--memory", "900Ti"]);
    server.deploy(project(ECHO, { realtime: "  compute: {cpu: 3000, mem: 500Ti}\n" }));
    expect(await (await server.post("/echo", { a: 1 })).json()).toEqual({ a: 1 });
  });

  it("does not share its data directory with another", async () => {
    server = new TestServer();
    await server.start();
    const second = server.cli(["up", "--listen", "127.0.0.1:0"]);
    expect(second).toMatchObject({
      code: 1,
      err: expect.stringContaining(`is in use by the Quern with process id ${server.parent!.pid}`),
    });
    expect((await server.fetch("/-/livez")).status).toBe(200);
  });

  it.each([
    [["--listen", "0.0.0.0:0"], 1, "--insecure-no-auth"],
    [["--listen", "nonsense"], 2, "HOST:PORT"],
    [["--max-body", "x"], 2, "number of bytes"],
    [["--drain-delay", "x"], 2, "from 0 to 3600"],
    [["--submit-priority-max", "101"], 2, "from -100 to 100"],
    [["--listen", "127.0.0.1:0", "--allow-local-root", "/nowhere"], 1, "no such directory"],
  ])("refuses to start with %j", (args, code, message) => {
    server = new TestServer();
    const result = server.cli(["up", ...args]);
    expect([result.code, result.err]).toEqual([code, expect.stringContaining(message)]);
  });

  it("resolves relative paths from its working directory at the start", async () => {
    server = new TestServer();
    server.workingDirectory = server.dir;
    mkdirSync(join(server.dir, "more"));
    writeFileSync(join(server.dir, "more", "x.txt"), "");
    await server.start({ QUERN_DATA_DIR: "data" }, ["--allow-local-root", "more"]);
    server.deploy(project(OBEDIENT), { wait: false });
    const input = { store_paths: [`file://${server.dir}/more/`], batch_size: 1 };
    const answer = await server.post("/jobs?dryRun=true", { workers: 1, file_path_lister: input });
    expect(await answer.json()).toMatchObject({ files: [`file://${server.dir}/more/x.txt`] });
    expect(existsSync(join(server.dataDir, "instance.json"))).toBe(true);
  });

  it("reads several roots from the variable, with and without :ro", async () => {
    server = new TestServer();
    const roots = ["in", "out", "ro"].map((name) => join(server.dir, name));
    for (const root of roots) {
      mkdirSync(root);
      writeFileSync(join(root, "x.txt"), "");
    }
    await server.start({ QUERN_ALLOW_LOCAL_ROOT: `${roots[0]}:ro:${roots[1]}:${roots[2]}:ro` });
    server.deploy(project(OBEDIENT), { wait: false });
    for (const root of roots) {
      const input = { store_paths: [`file://${root}/`], batch_size: 1 };
      const answer = await server.post("/jobs?dryRun=true", { workers: 1, file_path_lister: input });
      expect(await answer.json()).toMatchObject({ files: [`file://${root}/x.txt`] });
    }
    const input = { store_paths: [`file://${server.dir}/`], batch_size: 1 };
    const answer = await server.post("/jobs?dryRun=true", { workers: 1, file_path_lister: input });
    const { message } = (await answer.json()) as { message: string };
    expect(message).toContain(`${roots[0]}:ro, ${roots[1]}, ${roots[2]}:ro`);
  });

  it("keeps its data directory private under an allowed root", async () => {
    server = new TestServer();
    await server.start({}, ["--allow-local-root", server.dir]);
    server.deploy(project(OBEDIENT), { wait: false });
    writeFileSync(join(server.inputs, "x.txt"), "");
    const preview = async (path: string) => {
      const input = { store_paths: [`file://${path}`], batch_size: 1 };
      const answer = await server.post("/jobs?dryRun=true", { workers: 1, file_path_lister: input });
      return (await answer.json()) as { files: string[]; code?: string };
    };
    const { files } = await preview(`${server.dir}/`);
    expect(files).toContain(`file://${server.inputs}/x.txt`);
    expect(files.filter((file) => file.includes(server.dataDir))).toEqual([]);
    for (const path of [`${server.dataDir}/`, join(server.dataDir, "admin-token")])
      expect((await preview(path)).code).toBe("path_not_allowed");
  });

  it("reports an address that is in use", async () => {
    server = new TestServer();
    await server.start();
    const second = new TestServer();
    const { port } = new URL(server.baseUrl);
    const result = second.cli(["up", "--listen", `127.0.0.1:${port}`]);
    expect(result).toMatchObject({ code: 1, err: expect.stringContaining("choose another with --listen") });
    await second.stop();
  });

  it("restarts a replica that dies early, at first at once and then with growing delays", async () => {
    server = new TestServer();
    await server.start();
    const log = join(server.dir, "starts");
    server.deploy(
      project(
        `import os, threading\nclass PythonPredictor:\n  def __init__(self, config):\n    open(${JSON.stringify(log)}, "a").write("start\\n")\n    threading.Timer(0.05, os._exit, [1]).start()\n  def predict(self, payload): pass\n`,
      ),
      { wait: false },
    );
    const starts = () => (existsSync(log) ? readFileSync(log, "utf8").trim().split("\n").length : 0);
    await eventually("it was started four times", () => starts() >= 4);
    expect(starts()).toBeLessThan(6);
  });

  it("refuses a data directory that a newer Quern wrote", async () => {
    server = new TestServer();
    await server.start();
    server.parent!.kill("SIGTERM");
    await eventually("it has ended", () => server.parent!.exitCode === 0);
    const db = server.openDatabase();
    await db.run("UPDATE schema_version SET version = 999");
    await db.close();
    expect(server.cli(["up", "--listen", "127.0.0.1:0"])).toMatchObject({
      code: 1,
      err: expect.stringContaining("start it with the newer Quern"),
    });
  });

  it("answers running requests on SIGTERM, exits with 0, and continues its jobs at the next start", async () => {
    server = new TestServer();
    await server.start();
    server.deploy(project(OBEDIENT));
    const log = join(server.dir, "log");
    writeFileSync(log, "");
    const items = Array.from({ length: 40 }, (_, id) => ({ id, do: "sleep", seconds: 0.1 }));
    const id = await server.submit("jobs", {
      workers: 2,
      config: { log },
      item_list: { items, batch_size: 1 },
    });
    await eventually(
      "some batches are done",
      async () => (await server.job("jobs", id)).batch_metrics.succeeded > 5,
    );
    const touch = join(server.dir, "begun");
    const running = server.post("/echo", { do: "sleep", seconds: 1, id: "finished", touch });
    await eventually("it has begun", () => existsSync(touch));
    server.parent!.kill("SIGTERM");
    expect(await (await running).json()).toBe("finished");
    await eventually("it has ended", () => server.parent!.exitCode !== null);
    expect(server.parent!.exitCode).toBe(0);
    expect(server.workers()).toEqual([]);
    await server.start();
    expect(await server.ended("jobs", id)).toMatchObject({
      status: "status_succeeded",
      batch_metrics: { succeeded: 40, failed: 0 },
    });
    expect(readFileSync(log, "utf8").trim().split("\n")).toHaveLength(40);
    await eventually("the API is back", async () => (await server.post("/echo", { id: 1 })).status === 200);
  });

  it("serves predictions without a controller, and the next one adopts the replica", async () => {
    server = new TestServer();
    await server.start();
    server.deploy(project(OBEDIENT));
    const pid = await (await server.post("/echo", { do: "pid" })).json();
    const controller = server.child("controller");
    process.kill(controller, "SIGSTOP");
    expect((await server.post("/echo", { id: 1 })).status).toBe(200);
    process.kill(controller, "SIGKILL");
    for (let i = 0; i < 50; i++) expect((await server.post("/echo", { id: i })).status).toBe(200);
    await eventually("the controller is back", () => server.cli(["get"]).code === 0);
    expect(await (await server.post("/echo", { do: "pid" })).json()).toBe(pid);
    expect(server.cli(["get"]).out).toContain("live");
  });

  it("passes headers and query parameters also while a replica is busy that another controller has started", async () => {
    server = new TestServer();
    await server.start();
    server.deploy(project(CAREFUL));
    const ask = async (seconds: number) => {
      const response = await server.post("/echo?tenant=a", seconds, { "x-tenant": "b" });
      return [response.status, await response.json()];
    };
    expect(await ask(0)).toEqual([200, ["a", "b"]]);
    const busy = ask(4);
    const starts = () => (server.cli(["logs", "echo"]).out.match(/busy/g) ?? []).length;
    await eventually("it is busy", () => starts() === 1);
    const former = server.child("controller");
    process.kill(former, "SIGKILL");
    await eventually("the controller is back", () => server.cli(["get"]).code === 0);
    const others = await Promise.all(Array.from({ length: 5 }, () => ask(0)));
    expect(others).toEqual(Array(5).fill([200, ["a", "b"]]));
    expect(await busy).toEqual([200, ["a", "b"]]);
  });

  it("serves the old version until the new one is ready, and loses no request", async () => {
    server = new TestServer();
    await server.start();
    const version = (name: string, wait: number) =>
      project(
        `import time\nclass PythonPredictor:\n  def __init__(self, config): time.sleep(${wait})\n  def predict(self, payload): return "${name}"\n`,
      );
    server.deploy(version("one", 0));
    const answers: string[] = [];
    let isOver = false;
    const caller = (async () => {
      while (!isOver) {
        const response = await server.post("/echo", 1);
        answers.push(`${response.status} ${await response.text()}`);
      }
    })();
    server.deploy(version("two", 1), { wait: false });
    await eventually("the new version answers", () => answers.at(-1) === '200 "two"');
    isOver = true;
    await caller;
    const changes = answers.filter((answer, i) => answer !== answers[i - 1]);
    expect(changes).toEqual(['200 "one"', '200 "two"']);
  });

  it("shows why a new version cannot start, and keeps the old one serving", async () => {
    server = new TestServer();
    await server.start();
    server.deploy(project(ECHO));
    expect(() =>
      server.deploy(project(ECHO.replace("self.config = config", "raise RuntimeError('no model')"))),
    ).toThrow("RuntimeError: no model");
    expect(server.cli(["get"]).out).toMatch(/echo {11}error/);
    expect((await server.post("/echo", 1)).status).toBe(200);
    server.deploy(project(ECHO));
    expect(server.cli(["get"]).out).toMatch(/echo {11}live/);
  });

  it("installs requirements.txt once for the same content, and shows pip's message when it fails", async () => {
    server = new TestServer();
    await server.start();
    const tiny = join(server.dir, "tiny");
    mkdirSync(tiny);
    writeFileSync(join(tiny, "pyproject.toml"), PYPROJECT);
    writeFileSync(join(tiny, "backend.py"), BACKEND);
    writeFileSync(join(tiny, "tiny_quern.py"), "WORD = 'installed'\n");
    const files = project(
      "import os, shutil, sys, tiny_quern\nclass PythonPredictor:\n  def __init__(self, config): pass\n" +
        "  def predict(self, payload): return [tiny_quern.WORD, shutil.which('python'), shutil.which('pip'), os.environ['VIRTUAL_ENV'], sys.prefix]\n",
    );
    server.deploy({ ...files, "requirements.txt": `${tiny}\n` }, { wait: false });
    const answers = async () => (await server.post("/echo", 1)).status === 200;
    await eventually("it is installed", answers, 150_000);
    // Its commands are the environment's, not the host's.
    const [word, python, pip, virtualEnv, prefix] = (await (
      await server.post("/echo", 1)
    ).json()) as string[];
    expect([word, python, pip, virtualEnv]).toEqual([
      ...["installed", `${prefix}/bin/python`, `${prefix}/bin/pip`, prefix],
    ]);
    expect(prefix).toContain(join(server.dataDir, "environments"));
    const id = await server.submit("jobs", { workers: 1, item_list: { items: [1], batch_size: 1 } });
    expect((await server.ended("jobs", id)).status).toBe("status_succeeded");
    // Nothing was installed for it.
    expect(existsSync(join(server.dataDir, "logs", "jobs", id, "install.log"))).toBe(false);
    for (const line of ["/nowhere/not-a-package", "-r /dev"]) {
      server.deploy({ ...files, "requirements.txt": `${line}\n` }, { wait: false });
      const job = { workers: 1, item_list: { items: [1], batch_size: 1 } };
      const failed = await server.ended("jobs", await server.submit("jobs", job));
      const reason = {
        code: "requirements_failed",
        message: expect.stringContaining(line.split(" ").at(-1)!),
      };
      expect(failed).toMatchObject({ status: "status_worker_error", reason });
    }
  }, 200_000);

  it("leaves nothing of a submission that was cut off before it was recorded", async () => {
    server = new TestServer();
    await server.start({ QUERN_TEST_KILL_AT: "submission-before-commit" });
    server.deploy(project(OBEDIENT), { wait: false });
    // Long enough for a file of their own.
    const items = ["x".repeat(ITEMS_STORED_BYTES_MAX)];
    const job = { workers: 1, item_list: { items, batch_size: 1 } };
    expect((await server.post("/jobs", job)).status).toBe(503);
    await eventually("it is back", async () => (await server.fetch("/jobs")).status === 200);
    expect(readdirSync(join(server.dataDir, "jobs"))).toEqual([]);
    const { status } = await server.ended("jobs", await server.submit("jobs", job));
    expect([status, readdirSync(join(server.dataDir, "jobs"))]).toEqual([
      "status_succeeded",
      [expect.any(String)],
    ]);
  });

  it("recovers when gateway and controller are killed at the same moment", async () => {
    server = new TestServer();
    await server.start();
    for (let round = 0; round < 3; round++) {
      const before = [server.child("controller"), server.child("gateway")];
      killAll(before);
      await eventually("both were started again", () =>
        (["controller", "gateway"] as const).every((role) => {
          try {
            return !before.includes(server.child(role));
          } catch {
            return false;
          }
        }),
      );
      await eventually(
        "the server answers",
        async () => (await server.fetch("/-/version").catch(() => undefined))?.status === 401,
      );
    }
  });

  it("waits for an __init__ of several seconds, and shows the API as updating meanwhile", async () => {
    server = new TestServer();
    await server.start();
    server.deploy(
      project(
        "import time\nclass PythonPredictor:\n  def __init__(self, config): time.sleep(4)\n  def predict(self, payload): return 'ready'\n",
      ),
      { wait: false },
    );
    expect(server.cli(["get"]).out).toMatch(/echo {11}updating/);
    process.kill(server.child("controller"), "SIGKILL");
    expect(await (await server.post("/echo", 1)).json()).toBe("ready");
  });

  it("that stops leaves nothing running: neither a retired replica that hangs nor a batch", async () => {
    server = new TestServer();
    await server.start();
    const hangs = (n: number) =>
      project(`${ECHO}
import atexit, time
atexit.register(lambda: time.sleep(600))
class PythonPredictor(PythonPredictor):
    def predict(self, payload):
        if isinstance(payload, list): time.sleep(600)
        return [${n}, payload]
`);
    server.deploy(hangs(1));
    server.deploy(hangs(2));
    const answer = async () => (await server.post("/echo", 1)).text();
    await eventually("the second version", async () => (await answer()) === "[2,1]");
    await server.submit("jobs", { workers: 1, item_list: { items: [1], batch_size: 1 } });
    await eventually("both replicas and the batch's worker run", () => server.workers().length === 3);
    const exited = once(server.parent!, "exit");
    server.parent!.kill("SIGTERM");
    expect(await exited).toEqual([0, null]);
    expect(server.workers()).toEqual([]);
    expect(existsSync(join(server.dataDir, "quern.db.in-use"))).toBe(false);
  }, 60_000);
});
