/** A server that is stopped while its PostgreSQL is away. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { isPostgresInstalled, Postgres } from "../../harness/postgres.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

const ITEMS = 100;
/** docs/contract/operations.md#database-given-up: what has not stopped then is killed. */
const STOP_MS = 30_000;

describe.runIf(isPostgresInstalled)("a server whose PostgreSQL is away", () => {
  let postgres: Postgres;
  let server: TestServer;
  let log: string;
  beforeAll(async () => {
    postgres = await Postgres.start();
    server = new TestServer({ QUERN_DATABASE: postgres.url });
    log = join(server.dir, "log");
    await server.start();
    server.deploy(project(OBEDIENT));
  });
  afterAll(async () => {
    await server.stop();
    postgres.stop();
  });

  const submit = () =>
    server.submit("jobs", {
      workers: 2,
      config: { log },
      item_list: {
        items: Array.from({ length: ITEMS }, (_, id) => ({ id, do: "sleep", seconds: 0.05 })),
        batch_size: 1,
      },
    });

  it.each([
    ["stands still", () => postgres.pause(), () => postgres.resume()],
    ["is shut down", () => postgres.end("fast"), () => postgres.begin()],
  ])("stops by itself if it %s, and the next start finishes the job", async (_, leave, comeBack) => {
    writeFileSync(log, "");
    const id = await submit();
    const isBegun = async () => (await server.job("jobs", id)).batch_metrics.succeeded > 5;
    await eventually("the job has begun", isBegun);
    leave();
    const beganMs = performance.now();
    try {
      await server.stopProcesses();
    } finally {
      comeBack();
    }
    expect(performance.now() - beganMs).toBeLessThan(STOP_MS);
    expect(server.parent!.exitCode).toBe(0);
    await server.start();
    const job = await server.ended("jobs", id);
    expect([job.status, job.batch_metrics]).toMatchObject([
      "status_succeeded",
      { succeeded: ITEMS, failed: 0 },
    ]);
    const lines = readFileSync(log, "utf8").trim().split("\n");
    expect(new Set(lines).size).toBe(ITEMS);
  });
});
