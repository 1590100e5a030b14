/** A server on a PostgreSQL that is killed, stopped, paused and started again. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { isPostgresInstalled, Postgres, psql } from "../../harness/postgres.ts";
import { processes } from "../../harness/processes.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

const ITEMS = 150;
/** docs/contract/operations.md#database-given-up: what has not stopped then is killed. */
const STOP_MS = 30_000;
/** Node that has no client of PostgreSQL. */
const WITHOUT_CLIENT = `data:text/javascript,${encodeURIComponent(
  `import { register } from "node:module";
   register("data:text/javascript," + encodeURIComponent(
     'export const resolve = (name, context, next) => { if (name === "pg") throw new Error("no pg"); return next(name, context); }'));`,
)}`;

describe.runIf(isPostgresInstalled)("a server on PostgreSQL", () => {
  let postgres: Postgres;
  let server: TestServer;
  let databases = 0;
  beforeAll(async () => {
    postgres = await Postgres.start();
  });
  afterAll(() => postgres.stop());

  const newUrl = () => {
    const name = `quern${++databases}`;
    psql(postgres.url, `CREATE DATABASE ${name}`);
    return postgres.urlOf(name).replace("quern@", "quern:hush-hush@");
  };

  describe("that runs", () => {
    let log: string;
    let url: string;
    beforeEach(async () => {
      url = newUrl();
      server = new TestServer({ QUERN_DATABASE: url });
      await server.start();
      log = join(server.dir, "log");
      writeFileSync(log, "");
      await server.deployBeside(project(OBEDIENT));
    });
    afterEach(() => server.stop());

    const submit = (seconds = 0.02) =>
      server.submit("jobs", {
        workers: 2,
        config: { log },
        item_list: {
          items: Array.from({ length: ITEMS }, (_, id) => ({ id, do: "sleep", seconds })),
          batch_size: 1,
        },
      });
    const predicts = async () => expect((await server.post("/echo", { id: "p" })).status).toBe(200);
    const health = () => {
      const token = readFileSync(join(server.dataDir, "admin-token"), "utf8").trim();
      return server.fetch("/-/healthz", { headers: { authorization: `Bearer ${token}` } });
    };
    const isUnwell = async () => {
      const response = await health();
      if (response.status === 200) return false;
      expect(await response.json()).toMatchObject({
        status: 503,
        code: "database_unavailable",
        message: expect.stringContaining("the database cannot be reached"),
      });
      return true;
    };
    const isWell = async () => (await health()).status === 200;
    const expectWhole = async (id: string) => {
      const ended = await server.ended("jobs", id);
      expect([ended.status, ended.batch_metrics]).toMatchObject([
        "status_succeeded",
        { succeeded: ITEMS, failed: 0 },
      ]);
      expect(
        new Set(
          readFileSync(log, "utf8")
            .trim()
            .split("\n")
            .filter((line) => line !== "p"),
        ).size,
      ).toBe(ITEMS);
    };

    it.each(["killed", "shut down"])(
      "finishes its job although PostgreSQL is %s again and again, and predictions go on",
      async (how) => {
        const id = await submit();
        for (let round = 0; round < 3; round++) {
          await pause(200);
          if (how === "killed") postgres.kill();
          else postgres.end("fast");
          await predicts();
          await eventually("it says so", isUnwell);
          await predicts();
          postgres.begin();
          await eventually("it is well again", isWell);
        }
        await expectWhole(id);
        expect(server.stderr).not.toContain("unhandled error");
        expect(server.stderr).not.toContain("internal error");
      },
    );

    it("waits for a PostgreSQL that stands still, says so, and refuses requests meanwhile", async () => {
      const id = await submit();
      postgres.pause();
      const read = server.fetch(`/jobs/${id}`);
      const first = await Promise.race([health(), read]);
      expect([first.url, first.status]).toEqual([`${server.baseUrl}/-/healthz`, 503]);
      await eventually("it says so", isUnwell);
      await predicts();
      const refused = await read;
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
      expect(await refused.json()).toMatchObject({ code: "database_unavailable" });
      postgres.resume();
      await expectWhole(id);
    });

    it("accepts a submission once, although the first response says that the database is away", async () => {
      const headers = { "idempotency-key": "one" };
      const job = { workers: 1, config: { log }, item_list: { items: [{ id: 1 }], batch_size: 1 } };
      postgres.kill();
      const refused = await server.post("/jobs", job, headers);
      expect([refused.status, await refused.json()]).toMatchObject([503, { code: "database_unavailable" }]);
      postgres.begin();
      await eventually("it is well again", isWell);
      const ids = new Set<string>();
      for (let i = 0; i < 3; i++)
        ids.add(((await (await server.post("/jobs", job, headers)).json()) as { job_id: string }).job_id);
      expect(ids.size).toBe(1);
      expect((await server.ended("jobs", [...ids][0]!)).batch_metrics.succeeded).toBe(1);
      expect(readFileSync(log, "utf8")).toBe("1\n");
    });

    it("serves predictions while its controller waits for PostgreSQL to start, and then goes on", async () => {
      const id = await submit();
      postgres.kill();
      const controller = server.child("controller");
      process.kill(controller, "SIGKILL");
      await eventually("another controller is there", () => {
        try {
          return server.child("controller") !== controller;
        } catch {
          return false;
        }
      });
      await predicts();
      await eventually("it waits", () => server.stderr.includes("jobs and changes wait for it"));
      await predicts();
      postgres.begin();
      await expectWhole(id);
    });

    it.each([
      ["stands still", () => postgres.pause(), () => postgres.resume()],
      ["is shut down", () => postgres.end("fast"), () => postgres.begin()],
    ])(
      "stops by itself if PostgreSQL %s, and the next start finishes the job",
      async (_, leave, comeBack) => {
        const id = await submit(0.05);
        const isBegun = async () => (await server.job("jobs", id)).batch_metrics.succeeded > 5;
        await eventually("the job has begun", isBegun);
        leave();
        const beganMs = performance.now();
        await server.stopProcesses().finally(comeBack);
        expect(performance.now() - beganMs).toBeLessThan(STOP_MS);
        expect(server.parent!.exitCode).toBe(0);
        await server.start();
        await expectWhole(id);
      },
    );

    it("shows the password of its database to nobody", async () => {
      postgres.kill();
      await eventually("it says so", isUnwell);
      const away = await (await health()).text();
      const doctorAway = await server.cliBeside(["doctor"]);
      expect(doctorAway.out).toContain("cannot be reached");
      postgres.begin();
      await eventually("it is well again", isWell);
      const doctor = await server.cliBeside(["doctor"]);
      expect(doctor.out).toMatch(
        /database +ok +postgres:\/\/quern@127\.0\.0\.1:\d+\/quern\d+, PostgreSQL \d+/,
      );
      const children = processes().filter(({ ppid }) => ppid === server.parent!.pid);
      const said = [away, doctorAway.out, doctorAway.err, doctor.out, server.stderr];
      for (const { command } of children) said.push(command);
      expect(children.length).toBeGreaterThan(1);
      for (const text of said) expect(text).not.toContain("hush-hush");
      const env = await server.post("/echo", { do: "env" });
      expect(await env.text()).not.toContain("hush-hush");
    });

    it("is refused to another data directory, and to a copy while this one runs", async () => {
      const other = new TestServer({ QUERN_DATABASE: url });
      execFileSync("sh", ["-c", `mkdir ${other.dataDir}`]);
      const refused = other.startCli(["up", "--listen", "127.0.0.1:0"]);
      await server.stopProcesses();
      expect([await refused.ended, refused.err]).toEqual([
        1,
        expect.stringMatching(/belongs to another data directory than .*Nothing was changed/),
      ]);
      // The directory without its database, and the database without its directory.
      const alone = server.startCli(["up", "--listen", "127.0.0.1:0"], { QUERN_DATABASE: "" });
      expect([await alone.ended, alone.err]).toEqual([
        1,
        expect.stringContaining("or give the --database that it was used with"),
      ]);
      const empty = server.startCli(["up", "--listen", "127.0.0.1:0"], { QUERN_DATABASE: newUrl() });
      expect([await empty.ended, empty.err]).toEqual([1, expect.stringContaining("has no tables, but")]);
      // A copy of both is a copy: its jobs wait.
      execFileSync("rm", ["-r", other.dataDir]);
      execFileSync("cp", ["-a", server.dataDir, other.dataDir]);
      await other.start();
      expect(other.stderr).toContain("is a copy of another data directory");
      await other.stop();
      const former = server.startCli(["up", "--listen", "127.0.0.1:0"]);
      expect([await former.ended, former.err]).toEqual([
        1,
        expect.stringContaining("belongs to another data directory"),
      ]);
    });
  });

  describe("that starts", () => {
    beforeEach(() => {
      server = new TestServer();
    });
    afterEach(() => server.stop());
    const refused = (env: NodeJS.ProcessEnv) => server.cliBeside(["up", "--listen", "127.0.0.1:0"], env);

    it("names the cure if the client is not installed", async () => {
      const { code, err } = await refused({
        QUERN_DATABASE: newUrl(),
        NODE_OPTIONS: `--import=${WITHOUT_CLIENT}`,
      });
      expect([code, err]).toEqual([1, expect.stringContaining("run `npm install pg`")]);
      expect(err).not.toContain("hush-hush");
    });

    it.each([
      ["mysql://quern:hush-hush@h/d", 2, "--database must be postgres://USER:PASSWORD@HOST:PORT/DATABASE"],
      ["postgres://quern:hush-hush@h/", 2, "the name of the database is missing"],
      ["postgres://quern:hush-hush@h,i/d", 2, "a name that always leads to the primary server"],
      [
        "postgres://quern:hush-hush@h/d?sslmode=require",
        2,
        "it must be one of disable, verify-full, no-verify",
      ],
    ])("refuses the address %s", async (QUERN_DATABASE, status, message) => {
      const { code, err } = await refused({ QUERN_DATABASE });
      expect([code, err]).toEqual([status, expect.stringContaining(message)]);
      expect(err).not.toContain("hush-hush");
    });

    it("makes a key before it runs, in its database", async () => {
      const url = newUrl();
      const args = ["keys", "create", "--scope", "predict", "--data-dir", server.dataDir];
      const made = await server.cliBeside(args, { QUERN_DATABASE: url });
      expect([made.code, made.out]).toEqual([0, expect.stringMatching(/^quern_/)]);
      expect(psql(url, "SELECT count(*) FROM keys")).toBe("1");
      expect(existsSync(join(server.dataDir, "quern.db"))).toBe(false);
    });
  });
});
