/** A server whose PostgreSQL has a full disk, or another owner. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../harness/eventually.ts";
import { isPostgresInstalled, Postgres, psql } from "../../harness/postgres.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";

const ITEMS = 100;
const isRoot = process.getuid!() === 0;

describe.runIf(isPostgresInstalled)("a server on PostgreSQL", () => {
  let postgres: Postgres;
  let server: TestServer;
  let log: string;
  beforeAll(async () => {
    postgres = await Postgres.start();
  });
  afterAll(() => postgres.stop());
  afterEach(() => server.stop());

  const startOn = async (database: string) => {
    server = new TestServer({ QUERN_DATABASE: postgres.urlOf(database) });
    await server.start();
    log = join(server.dir, "log");
    writeFileSync(log, "");
    await server.deployBeside(project(OBEDIENT));
  };
  const job = (noise = "") => ({
    workers: 2,
    config: { log, noise },
    item_list: {
      items: Array.from({ length: ITEMS }, (_, id) => ({ id, do: "sleep", seconds: 0.03 })),
      batch_size: 1,
    },
  });
  const handled = () => new Set(readFileSync(log, "utf8").split("\n").filter(Boolean)).size;
  const expectWhole = async (id: string) => {
    const { status, batch_metrics } = await server.ended("jobs", id);
    expect([status, batch_metrics]).toMatchObject(["status_succeeded", { succeeded: ITEMS, failed: 0 }]);
    expect(handled()).toBe(ITEMS);
  };

  it("starts its controller again after another owner had its database, and finishes its jobs", async () => {
    psql(postgres.url, "CREATE DATABASE taken");
    await startOn("taken");
    const id = await server.submit("jobs", job());
    await eventually("it runs", () => handled() > 5);
    const controller = server.child("controller");
    psql(
      postgres.urlOf("taken"),
      `DELETE FROM quern_writer;
       SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'quern'`,
    );
    await eventually("it stops", () => server.stderr.includes("has taken the database meanwhile"));
    await eventually("another controller is there", () => {
      try {
        return server.child("controller") !== controller;
      } catch {
        return false;
      }
    });
    await expectWhole(id);
    expect(server.stderr).not.toContain("internal error");
  });

  // Only root may mount a small disk.
  it.runIf(isRoot)(
    "finishes its job although the disk of PostgreSQL was full, and refuses submissions meanwhile",
    async () => {
      const disk = mkdtempSync(join(tmpdir(), "quern-tablespace-"));
      const filler = join(disk, "filler");
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=32m", "tmpfs", disk]);
      try {
        execFileSync("chown", ["postgres", disk]);
        psql(postgres.url, `CREATE TABLESPACE small LOCATION '${disk}'`);
        psql(postgres.url, "CREATE DATABASE small TABLESPACE small");
        await startOn("small");
        const id = await server.submit("jobs", job());
        await eventually("it runs", () => handled() > 5);
        expect(() => writeFileSync(filler, Buffer.alloc(1 << 26))).toThrow("ENOSPC");
        const refused = await server.post("/jobs", job(randomBytes(60_000).toString("hex")));
        expect([refused.status, await refused.json()]).toMatchObject([507, { code: "disk_full" }]);
        rmSync(filler);
        await expectWhole(id);
        await expectWhole(await server.submit("jobs", job(randomBytes(60_000).toString("hex"))));
        await server.stopProcesses();
        psql(postgres.url, "DROP DATABASE small WITH (FORCE)");
        psql(postgres.url, "DROP TABLESPACE small");
      } finally {
        execFileSync("umount", ["-l", disk]);
        rmSync(disk, { recursive: true });
      }
    },
  );
});
