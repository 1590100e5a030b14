/** Two servers of one database and one state: one has it, the other one waits (docs/decisions/0037-standby.md). */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { freePort } from "../../harness/faulty-proxy.ts";
import { allOf, killAllOf } from "../../harness/kill-server.ts";
import { isPostgresInstalled, Postgres, psql } from "../../harness/postgres.ts";
import { killAll } from "../../harness/processes.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";
import { isS3Installed, startS3, type TestS3 } from "../../harness/stores.ts";

const ITEMS = 400;
const items = Array.from({ length: ITEMS }, (_, id) => ({ id, do: "sleep", seconds: 0.02 }));
const all = items.map(({ id }) => id);
/** What a takeover takes at most is printed; this is the patience of a test on a busy machine. */
const PATIENCE_MS = 60_000;
const STOPPED_MS = 12_000;

describe.runIf(isPostgresInstalled && isS3Installed)("two servers of one database", () => {
  let postgres: Postgres;
  let s3: TestS3;
  let active: TestServer;
  let standby: TestServer;
  let url: string;
  let log: string;
  let databases = 0;
  beforeAll(async () => {
    postgres = await Postgres.start();
    s3 = await startS3();
  });
  afterAll(async () => {
    await s3.stop();
    postgres.stop();
  });
  beforeEach(async () => {
    const name = `standby_${++databases}`;
    psql(postgres.url, `CREATE DATABASE ${name}`);
    url = postgres.urlOf(name);
    const env = { ...s3.env, QUERN_DATABASE: url, QUERN_STATE: `${s3.base}/${name}` };
    active = await newServer(env);
    standby = await newServer(env);
    log = join(active.dir, "log");
    writeFileSync(log, "");
    await active.start();
    await active.deployBeside({
      ...project(OBEDIENT),
      "live.py":
        "class PythonPredictor:\n    def __init__(self, config): pass\n    def predict(self, payload): return payload\n",
      "quern.yaml": `${project(OBEDIENT)["quern.yaml"]}- name: live\n  predictor: {path: live.py}\n`,
    });
    standby.begin();
    await waits(standby);
  });
  afterEach(async () => {
    await Promise.all([active.stop(), standby.stop()]);
  });

  const newServer = async (env: NodeJS.ProcessEnv) => {
    const server = new TestServer(env);
    server.baseUrl = `http://127.0.0.1:${await freePort()}`;
    return server;
  };
  const readiness = async (server: TestServer) => {
    const response = await server.fetch("/-/readyz", { headers: { connection: "close" } });
    return `${response.status} ${(await response.text()).trim()}`;
  };
  const waits = (server: TestServer) =>
    eventually(
      "it waits",
      async () => (await readiness(server).catch(() => "")) === "503 standby",
      PATIENCE_MS,
      () => server.stderr,
    );
  const isLive = async (server: TestServer) => {
    const response = await server.post("/live", [1], { connection: "close" }).catch(() => undefined);
    return response?.status === 200 && (await response.text()) === "[1]";
  };
  /** Prints how long the takeover took: until it is ready, and until its API answers. */
  const takesOver = async (server: TestServer, sinceMs: number, what: string) => {
    const seconds = () => ((performance.now() - sinceMs) / 1000).toFixed(1);
    const isReady = async () => (await readiness(server).catch(() => "")) === "200 ok";
    await eventually("it is ready", isReady, PATIENCE_MS, () => server.stderr);
    const ready = seconds();
    await eventually(
      "its API answers",
      () => isLive(server),
      PATIENCE_MS,
      () => server.stderr,
    );
    console.log(`${what}: ready after ${ready} s, its API answers after ${seconds()} s`);
  };
  const submit = async () => {
    const input = { item_list: { items, batch_size: 1 } };
    const job = { workers: 2, config: { log }, output: { store_path: "quern:" }, ...input };
    const id = await active.submit("jobs", job);
    const isHalfDone = async () => ((await active.job("jobs", id)).batch_metrics?.succeeded ?? 0) > 100;
    await eventually("it runs", isHalfDone);
    return id;
  };
  const expectWhole = async (server: TestServer, id: string) => {
    const ended = await server.ended("jobs", id, PATIENCE_MS);
    expect(ended).toMatchObject({
      status: "status_succeeded",
      total_batch_count: ITEMS,
      batch_metrics: { succeeded: ITEMS, failed: 0 },
    });
    const rows = (await (await server.fetch(`/jobs/${id}/results`)).text()).split("\n").filter(Boolean);
    expect(rows.map((row) => (JSON.parse(row) as { batch_index: number }).batch_index)).toEqual(all);
    expect(new Set(readFileSync(log, "utf8").split("\n").filter(Boolean)).size).toBe(ITEMS);
  };

  it("the one that waits says so, changes nothing, and answers nothing else", async () => {
    const place = `${active.baseUrl}, data directory ${active.dataDir}`;
    const line = /quern is a standby: the server on \S+ \(.*\) has the database since 20/;
    await eventually("it says so on the terminal", () => line.test(standby.stderr));
    expect(standby.stderr).toContain(place);
    expect((await standby.fetch("/-/livez")).status).toBe(200);
    // For whoever counts servers, and sends no requests.
    for (const [query, status] of Object.entries({ "standby=ok": 200, "standby=": 503, "standby=no": 503 })) {
      const response = await standby.fetch(`/-/readyz?${query}`);
      expect([query, response.status, await response.text()]).toEqual([query, status, "standby\n"]);
    }
    for (const path of ["/live", "/jobs", "/-/version", "/-/healthz", "/-/metrics"]) {
      const response = await standby.fetch(path, { method: path === "/live" ? "POST" : "GET" });
      expect([response.status, response.headers.get("retry-after")]).toEqual([503, "1"]);
      const problem = (await response.json()) as { code: string; message: string };
      expect(problem).toMatchObject({
        code: "standby",
        message: expect.stringMatching(/the server on \S+ has/),
      });
      expect(problem.message).not.toContain(active.dataDir);
    }
    const epoch = psql(url, "SELECT epoch FROM owner");
    await pause(2_000);
    expect([psql(url, "SELECT epoch FROM owner"), await readiness(active)]).toEqual([epoch, "200 ok"]);
    expect(await isLive(active)).toBe(true);
  });

  it("the one that waits goes on with APIs and jobs after all processes of the other one are killed", async () => {
    const id = await submit();
    const killedMs = performance.now();
    await killAllOf(active);
    await takesOver(standby, killedMs, "kill -9");
    await expectWhole(standby, id);
    // The one that was killed becomes the standby.
    active.begin();
    await waits(active);
  });

  it("the one that waits takes over at once if the other one is stopped", async () => {
    const id = await submit();
    active.parent!.kill("SIGTERM");
    const isGone = () => active.parent!.exitCode !== null;
    await eventually("it has stopped", isGone, PATIENCE_MS);
    await takesOver(standby, performance.now(), "a clean stop");
    await expectWhole(standby, id);
  });

  it.each(["controller", "server"])(
    "a %s that is stopped (SIGSTOP) loses the database, and writes nothing when it goes on",
    async (what) => {
      const id = await submit();
      const formerWorkers = active.workers();
      const stopped = what === "server" ? allOf(active) : [active.child("controller")];
      for (const pid of stopped) process.kill(pid, "SIGSTOP");
      const stoppedMs = performance.now();
      await takesOver(standby, stoppedMs, `SIGSTOP of the ${what}`);
      recordWriters(url);
      await pause(Math.max(0, STOPPED_MS - (performance.now() - stoppedMs)));
      for (const pid of stopped) if (isThere(pid)) process.kill(pid, "SIGCONT");
      await waits(active);
      await expectWhole(standby, id);
      const areOver = () => formerWorkers.every((pid) => !isThere(pid));
      if (what === "server") await eventually("its workers end", areOver, PATIENCE_MS);
      // Replicas of a controller that was killed end after half a minute.
      else killAll(active.workers());
      expect(writers(url)).toBe(1);
      expect(await readiness(standby)).toBe("200 ok");
      if (what === "server")
        expect(active.stderr).toContain("another Quern has taken the database meanwhile");
    },
  );

  it.each(["killed", "shut down"])("exactly one has the database after PostgreSQL is %s", async (how) => {
    const id = await submit();
    if (how === "killed") postgres.kill();
    else postgres.end("fast");
    await pause(3_000);
    postgres.begin();
    const ready = async () => {
      const both = await Promise.all([active, standby].map(readiness));
      return both.filter((text) => text === "200 ok").length;
    };
    const server = await eventuallyOne();
    await expectWhole(server, id);
    expect(await ready()).toBe(1);

    async function eventuallyOne(): Promise<TestServer> {
      let found: TestServer | undefined;
      await eventually(
        "one has the job",
        async () => {
          for (const server of [active, standby]) {
            const response = await server.fetch(`/jobs/${id}`).catch(() => undefined);
            if (response?.status === 200) found = server;
          }
          return found !== undefined;
        },
        PATIENCE_MS,
      );
      console.log(`PostgreSQL ${how}: ${found === active ? "the active one" : "the standby"} has it`);
      return found!;
    }
  });
});

/** From now on, the sessions that change jobs or segments are recorded. */
function recordWriters(url: string): void {
  psql(
    url,
    `CREATE TABLE writers (pid INT);
     CREATE FUNCTION record_writer() RETURNS trigger LANGUAGE plpgsql AS
       'BEGIN INSERT INTO writers VALUES (pg_backend_pid()); RETURN NULL; END';
     CREATE TRIGGER of_jobs AFTER INSERT OR UPDATE OR DELETE ON jobs EXECUTE FUNCTION record_writer();
     CREATE TRIGGER of_workers AFTER INSERT OR UPDATE OR DELETE ON workers EXECUTE FUNCTION record_writer();
     CREATE TRIGGER of_owner AFTER INSERT OR UPDATE OR DELETE ON owner EXECUTE FUNCTION record_writer();`,
  );
}

function writers(url: string): number {
  return Number(psql(url, "SELECT count(DISTINCT pid) FROM writers"));
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
