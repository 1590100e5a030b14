/** A server whose files are in a bucket (`--state`), and which loses its data directory (docs/decisions/0034-state.md). */
import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { killAllOf } from "../../harness/kill-server.ts";
import { isPostgresInstalled, Postgres, psql } from "../../harness/postgres.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";
import { isS3Installed, startS3, type TestS3 } from "../../harness/stores.ts";
import type { JobView } from "../../harness/views.ts";

const ITEMS = 1_500;
/** Long enough that they are not kept in the database. */
const items = Array.from({ length: ITEMS }, (_, id) => ({ id, do: "sleep", seconds: 0.001 }));
const lines = items.map((item) => `${JSON.stringify(item)}\n`).join("");

describe.runIf(isPostgresInstalled && isS3Installed)("a server with its state in a bucket", () => {
  let postgres: Postgres;
  let s3: TestS3;
  let server: TestServer;
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
  afterEach(async () => {
    s3.proxy!.set({ kind: "none" });
    await server.stop();
  });

  const newServer = (env: NodeJS.ProcessEnv = {}) => {
    const name = `state_${++databases}`;
    psql(postgres.url, `CREATE DATABASE ${name}`);
    server = new TestServer({
      ...s3.env,
      QUERN_DATABASE: postgres.urlOf(name),
      QUERN_STATE: `${s3.base}/${name}`,
      ...env,
    });
    log = join(server.dir, "log");
    writeFileSync(log, "");
    return name;
  };
  const lose = async () => {
    await killAllOf(server);
    rmSync(server.dataDir, { recursive: true });
  };
  const resultsOf = async (id: string, headers = {}) => {
    const response = await server.fetch(`/jobs/${id}/results`, { headers });
    const text = await response.text();
    expect(response.status, text).toBe(200);
    const rows = text.split("\n").filter(Boolean);
    return rows.map((row) => (JSON.parse(row) as { batch_index: number }).batch_index);
  };
  const all = Array.from({ length: ITEMS }, (_, i) => i);

  it("serves its APIs, goes on with its jobs and has its keys after everything on the machine is lost", async () => {
    newServer();
    await server.start();
    await server.deployBeside({
      ...project(OBEDIENT),
      "live.py":
        "class PythonPredictor:\n    def __init__(self, config): pass\n    def predict(self, payload): return payload\n",
      "quern.yaml": `${project(OBEDIENT)["quern.yaml"]}- name: live\n  predictor: {path: live.py}\n`,
    });
    const path = server.writeInput("in.jsonl", lines);
    writeFileSync(join(server.inputs, "packed.jsonl.gz"), gzipSync(lines));
    const common = { workers: 1, config: { log }, output: { store_path: "quern:" } };
    const jobs = [
      { ...common, item_list: { items, batch_size: 1 } },
      { ...common, delimited_files: { store_paths: [path], batch_size: 1 } },
      {
        ...common,
        delimited_files: { store_paths: [`file://${server.inputs}/packed.jsonl.gz`], batch_size: 1 },
      },
    ];
    const ids: string[] = [];
    for (const job of jobs) ids.push(await server.submit("jobs", job));
    await eventually("all run", async () => {
      const running = await Promise.all(ids.map((id) => server.job("jobs", id)));
      return running.every(({ batch_metrics }) => (batch_metrics?.succeeded ?? 0) > 200);
    });
    const key = (
      JSON.parse((await server.cliBeside(["keys", "create", "--scope", "admin", "-o", "json"])).out) as {
        key: string;
      }
    ).key;
    const headers = { "x-api-key": key };
    await lose();
    await server.start();
    await eventually("the API serves", async () => {
      const response = await server.fetch("/live", {
        method: "POST",
        body: "[1]",
        headers: { "content-type": "application/json", ...headers },
      });
      return response.status === 200 && (await response.text()) === "[1]";
    });
    for (const id of ids) {
      const job = async () =>
        ((await (await server.fetch(`/jobs/${id}`, { headers })).json()) as { job_status: JobView })
          .job_status;
      await eventually("it ends", async () => (await job()).end_time !== undefined, 120_000);
      expect(await job()).toMatchObject({
        status: "status_succeeded",
        total_batch_count: ITEMS,
        batch_metrics: { succeeded: ITEMS, failed: 0 },
      });
      expect(await resultsOf(id, headers)).toEqual(all);
    }
  });

  it.each([
    "submission-before-commit",
    "submission-after-commit",
    "segment-before-commit",
    "segment-after-commit",
    "rows-after-sync",
    "ack-after-commit",
    "part-before-commit",
    "part-after-commit",
    "closing-after-commit",
    "manifest-after-put",
  ])("continues with exact counts after a kill at %s and the loss of its directory", async (point) => {
    const name = newServer();
    await server.start({ QUERN_TEST_KILL_AT: point });
    await server.deployBeside(project(OBEDIENT));
    writeFileSync(join(server.inputs, "packed.jsonl.gz"), gzipSync(lines));
    const isSubmission = point.startsWith("submission");
    const input = isSubmission
      ? { item_list: { items, batch_size: 1 } }
      : { delimited_files: { store_paths: [`file://${server.inputs}/packed.jsonl.gz`], batch_size: 1 } };
    const job = { workers: 2, config: { log }, output: { store_path: "quern:" }, ...input };
    await server.post("/jobs", job);
    await eventually("the controller was killed", () =>
      server.stderr.includes("the controller ended (SIGKILL)"),
    );
    await lose();
    await server.start();
    const { jobs } = (await (await server.fetch("/jobs")).json()) as { jobs: { job_id: string }[] };
    if (isSubmission) expect(jobs).toHaveLength(point === "submission-before-commit" ? 0 : 1);
    const stored = () => objectsBelow(join(s3.directory, name, "jobs"));
    if (point === "submission-before-commit") {
      await eventually("the items that nobody names are removed", () => stored().length === 0);
      return;
    }
    const id = jobs[0]!.job_id;
    expect(await server.ended("jobs", id, 120_000)).toMatchObject({
      status: "status_succeeded",
      total_batch_count: ITEMS,
      batch_metrics: { succeeded: ITEMS, failed: 0 },
    });
    expect(await resultsOf(id)).toEqual(all);
    expect(stored().every((path) => path.includes(id))).toBe(true);
  });

  it("refuses a prefix of another database, and a start without its state", async () => {
    const first = newServer();
    await server.start();
    await server.stopProcesses();
    const refused = async (env: NodeJS.ProcessEnv, options: readonly string[] = []) =>
      server.cliBeside(["up", "--listen", "127.0.0.1:0", ...options], env);
    const without = await refused({ QUERN_STATE: "" });
    expect([without.code, without.err]).toEqual([1, expect.stringContaining(`last at ${s3.base}/${first}/`)]);
    const elsewhere = await refused({ QUERN_STATE: `${s3.base}/elsewhere` });
    expect([elsewhere.code, elsewhere.err]).toEqual([
      1,
      expect.stringContaining("has nothing of this database"),
    ]);
    const noBucket = await refused({ QUERN_STATE: "s3://missing/quern" });
    expect([noBucket.code, noBucket.err]).toEqual([1, expect.stringContaining("cannot be used: ")]);
    const denied = await refused({ AWS_SECRET_ACCESS_KEY: "wrong" });
    expect([denied.code, denied.err]).toEqual([1, expect.stringContaining("cannot be used: ")]);
    const onSqlite = await refused({ QUERN_DATABASE: "" });
    expect([onSqlite.code, onSqlite.err]).toEqual([2, expect.stringContaining("--state needs --database")]);
    psql(postgres.url, "CREATE DATABASE other");
    const other = await refused({
      QUERN_DATABASE: postgres.urlOf("other"),
      QUERN_DATA_DIR: join(server.dir, "other"),
    });
    expect([other.code, other.err]).toEqual([1, expect.stringContaining("is not this database's")]);
    await server.start();
    expect((await server.fetch("/-/livez")).status).toBe(200);
  });

  it("waits for its store during an outage, and loses nothing", async () => {
    newServer();
    await server.start();
    await server.deployBeside(project(OBEDIENT));
    writeFileSync(join(server.inputs, "packed.jsonl.gz"), gzipSync(lines));
    const job = {
      workers: 1,
      config: { log },
      output: { store_path: "quern:" },
      delimited_files: { store_paths: [`file://${server.inputs}/packed.jsonl.gz`], batch_size: 1 },
    };
    s3.proxy!.set({ kind: "answer", status: 503 });
    const id = await server.submit("jobs", job);
    const refused = await server.post("/jobs", { workers: 1, item_list: { items, batch_size: 1 } });
    expect([refused.status, await refused.json()]).toMatchObject([502, { code: "store_unreachable" }]);
    expect(await (await server.post("/echo", { id: 7 })).text()).toBe("7");
    await eventually("its log says that it waits", async () => {
      const { out } = await server.cliBeside(["logs", "jobs", id]);
      return out.includes("trying again in");
    });
    s3.proxy!.set({ kind: "none" });
    expect(await server.ended("jobs", id, 120_000)).toMatchObject({
      status: "status_succeeded",
      batch_metrics: { succeeded: ITEMS, failed: 0 },
    });
    expect(await resultsOf(id)).toEqual(all);
    expect((await server.fetch("/jobs")).status).toBe(200);
  });

  it("removes from the bucket what it removes from its database", async () => {
    const name = newServer();
    await server.start({}, ["--keep-jobs", "0"]);
    await server.deployBeside(project(OBEDIENT));
    const id = await server.submit("jobs", {
      workers: 1,
      output: { store_path: "quern:" },
      item_list: { items, batch_size: 100 },
    });
    await server.ended("jobs", id);
    const stored = () => objectsBelow(join(s3.directory, name));
    expect(stored().map((path) => path.split("/")[0])).toEqual(
      expect.arrayContaining(["jobs", "outputs", "owner.json", "projects"]),
    );
    for (const api of ["echo", "jobs"])
      expect((await server.cliBeside(["delete", api, "--records", "-y"])).code).toBe(0);
    await eventually(
      "only its owner is left",
      () => String(stored()) === "owner.json",
      30_000,
      () => String(stored()),
    );
  });
});

/** Files are objects here. */
function objectsBelow(directory: string): string[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)));
}
