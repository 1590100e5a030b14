/** Trouble on the machine: no new processes, suspended processes, removed directories, locks of others. */
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { getPriority } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { processAgeMs, processStartTime } from "../../../src/base/process-identity.ts";
import { openSqlite } from "../../../src/database/sqlite-drivers.ts";
import { runtimeDirectory } from "../../../src/settings/runtime-directory.ts";
import { isOnSqlite } from "../../harness/databases.ts";
import { eventually } from "../../harness/eventually.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

function hasPrlimit(): boolean {
  try {
    execFileSync("prlimit", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

describe("a server in trouble", () => {
  const server = new TestServer();
  beforeAll(async () => {
    await server.start();
    server.deploy(project(OBEDIENT));
  }, 60_000);
  afterAll(() => server.stop(), 90_000);

  const answers = async () => (await server.post("/echo", { id: 7 }).catch(() => undefined))?.status === 200;
  const another = (role: "gateway" | "controller", former: number) => () => {
    try {
      return server.child(role) !== former;
    } catch {
      return false;
    }
  };

  it("has workers that the kernel kills before the server when memory runs out", async () => {
    const scoreOf = (pid: number) => Number(readFileSync(`/proc/${pid}/oom_score_adj`, "latin1"));
    const pid = (await (await server.post("/echo", { do: "pid" })).json()) as number;
    expect(scoreOf(pid)).toBeGreaterThan(scoreOf(server.parent!.pid!));
    expect(scoreOf(pid)).toBeGreaterThan(scoreOf(server.child("controller")));
    const env = (await (await server.post("/echo", { do: "env" })).json()) as Record<string, string>;
    expect(Object.keys(env).filter((name) => name.startsWith("QUERN_"))).toEqual(["QUERN_API_URL"]);
  });

  it("gives replicas and the server priority on the CPU over workers of jobs", async () => {
    const replicas = new Set(server.workers());
    const items = [{ id: 0, do: "sleep", seconds: 60 }];
    const id = await server.submit("jobs", { workers: 1, item_list: { items, batch_size: 1 } });
    const ofJob = () => server.workers().filter((pid) => !replicas.has(pid));
    await eventually("the job's worker is of low priority", () => ofJob().map(getPriority).includes(10));
    expect([...replicas, server.child("gateway")].map(getPriority)).toEqual(
      Array(replicas.size + 1).fill(getPriority()),
    );
    expect((await server.fetch(`/jobs/${id}`, { method: "DELETE" })).status).toBe(200);
  });

  it.runIf(isOnSqlite)(
    "waits for a database lock of another process, and then continues the job",
    async () => {
      const items = Array.from({ length: 20 }, (_, id) => ({ id, do: "sleep", seconds: 0.02 }));
      const id = await server.submit("jobs", { workers: 1, item_list: { items, batch_size: 1 } });
      await eventually(
        "a batch is done",
        async () => (await server.job("jobs", id)).batch_metrics.succeeded > 0,
      );
      const other = openSqlite(join(server.dataDir, "quern.db"));
      other.exec("PRAGMA busy_timeout = 5000");
      other.exec("BEGIN IMMEDIATE");
      // Requests that need no database are always answered.
      const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
      let slowestMs = 0;
      const until = performance.now() + 7_000;
      while (performance.now() < until) {
        const sentMs = performance.now();
        await server.fetch("/-/version", { headers: { authorization: `Bearer ${token}` } });
        slowestMs = Math.max(slowestMs, performance.now() - sentMs);
      }
      expect(slowestMs).toBeLessThan(2_500);
      await eventually("it is said", () => server.stderr.includes("has locked the database"));
      other.exec("ROLLBACK");
      other.close();
      expect(await server.ended("jobs", id)).toMatchObject({
        status: "status_succeeded",
        batch_metrics: { succeeded: 20, failed: 0 },
      });
    },
    90_000,
  );

  it.runIf(hasPrlimit())(
    "continues after a while in which no child can be started",
    async () => {
      const parent = String(server.parent!.pid);
      const limit = (files: string) => execFileSync("prlimit", ["--pid", parent, `--nofile=${files}`]);
      const former = /NOFILE.* (\d+) +(\d+)/.exec(
        execFileSync(
          "prlimit",
          ["--pid", parent, "--nofile", "--noheadings", "--output=RESOURCE,SOFT,HARD"],
          {
            encoding: "utf8",
          },
        ),
      )!;
      const gateway = server.child("gateway");
      limit(`4:${former[2]}`);
      process.kill(gateway, "SIGKILL");
      await eventually("it could not be started", () => server.stderr.includes("could not be started"));
      limit(`${former[1]}:${former[2]}`);
      await eventually("another gateway answers", answers);
      expect(server.parent!.exitCode).toBeNull();
    },
    60_000,
  );

  it("replaces a gateway and a controller that stop answering", async () => {
    const [gateway, controller] = [server.child("gateway"), server.child("controller")];
    for (const pid of [gateway, controller]) process.kill(pid, "SIGSTOP");
    await eventually("there is another gateway", another("gateway", gateway), 60_000);
    await eventually("there is another controller", another("controller", controller), 60_000);
    await eventually("predictions are answered", answers);
    await eventually("so is the controller", () => server.cli(["get"]).code === 0);
    expect(server.stderr).toContain("has not responded");
  }, 150_000);

  it("keeps working after its runtime directory was removed", async () => {
    const pid = await (await server.post("/echo", { do: "pid" })).json();
    rmSync(runtimeDirectory(server.dataDir), { recursive: true });
    expect(await answers()).toBe(true);
    await eventually("the controller is reached", () => server.cli(["get"]).code === 0);
    await eventually("a new replica serves", async () => {
      const response = await server.post("/echo", { do: "pid" });
      return response.status === 200 && (await response.json()) !== pid;
    });
    for (const role of ["gateway", "controller"] as const) process.kill(server.child(role), "SIGKILL");
    await eventually("it serves still", answers);
    const job = { workers: 1, item_list: { items: [1, 2, 3], batch_size: 1 } };
    await eventually("jobs are taken", async () => (await server.fetch("/jobs")).status === 200);
    expect(await server.ended("jobs", await server.submit("jobs", job))).toMatchObject({
      status: "status_succeeded",
    });
  }, 120_000);

  it("serves soon after its runtime directory was removed while no controller ran", async () => {
    await eventually("it serves", answers);
    const pid = (await (await server.post("/echo", { do: "pid" })).json()) as number;
    const ageMs = () => processAgeMs(processStartTime(pid)!)!;
    await eventually("the replica has listened for long", () => ageMs() > 11_000);
    process.kill(server.child("controller"), "SIGKILL");
    rmSync(runtimeDirectory(server.dataDir), { recursive: true });
    const startedMs = performance.now();
    await eventually("another replica serves", async () => {
      const response = await server.post("/echo", { do: "pid" });
      return response.status === 200 && (await response.json()) !== pid;
    });
    // A replica that nobody can reach ends after 30 s.
    expect(performance.now() - startedMs).toBeLessThan(25_000);
  }, 120_000);
});
