/** docs/contract/explain.md: what is wrong with the server itself, each situation made for real. */
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isOnSqlite } from "../../harness/databases.ts";
import { explained, findingOf, said } from "../../harness/explained.ts";
import { isPostgresInstalled, Postgres } from "../../harness/postgres.ts";
import { processes } from "../../harness/processes.ts";
import { OBEDIENT, project } from "../../harness/projects.ts";
import { TestServer } from "../../harness/server.ts";
import { mountSmallDisk, unmount } from "../../harness/small-disk.ts";

describe.runIf(isOnSqlite && isPostgresInstalled)("the explanation without a database", () => {
  let postgres: Postgres;
  let server: TestServer;
  beforeAll(async () => {
    postgres = await Postgres.start();
    server = new TestServer({ QUERN_DATABASE: postgres.urlOf("postgres") });
    await server.start();
    await server.deployBeside(project(OBEDIENT));
  });
  afterAll(async () => {
    await server.stop();
    postgres.stop();
  });

  it("says that the database cannot be reached", async () => {
    const job = await server.submit("jobs", { workers: 1, item_list: { items: [1], batch_size: 1 } });
    await server.ended("jobs", job);
    postgres.kill();
    const finding = await findingOf(server, "database_unreachable", "echo");
    expect(finding).toMatchObject({ severity: "error", command: "quern doctor" });
    const { job_id, findings } = await explained(server, "jobs", job);
    expect([job_id, findings[0]?.cause]).toEqual([job, "database_unreachable"]);
    expect((await server.post("/echo", {})).status).toBe(200);
    postgres.begin();
    await findingOf(server, "job_succeeded", "jobs", job);
  });
});

describe.runIf(isOnSqlite)("the explanation on a small disk", () => {
  const server = new TestServer();
  const isMounted = isOnSqlite && mountSmallDisk(server.dataDir, 24);
  const filler = join(server.dataDir, "filler");
  beforeAll(async () => {
    if (!isMounted) return;
    await server.start({}, ["--gateways", "2"]);
    await server.deployBeside(project(OBEDIENT));
  });
  afterAll(async () => {
    rmSync(filler, { force: true });
    await server.stopProcesses();
    if (isMounted) unmount(server.dataDir);
    await server.stop();
  });

  it.runIf(isMounted)("says that a gateway is missing", async () => {
    await findingOf(server, "all_well", "echo");
    const survivor = server.child("gateway");
    let isOver = false;
    const killing = (async () => {
      while (!isOver) {
        for (const { pid, ppid, command } of processes())
          if (ppid === server.parent!.pid && command.includes("__gateway") && pid !== survivor)
            process.kill(pid, "SIGKILL");
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })();
    const finding = await findingOf(server, "gateway_missing", "echo").finally(() => {
      isOver = true;
    });
    await killing;
    expect(finding.title).toBe("1 of 2 gateways are connected");
    await findingOf(server, "all_well", "echo");
  });

  it.runIf(isMounted)("says that the disk is full", async () => {
    for (let bytes = 1 << 20; bytes >= 1; bytes >>= 2)
      try {
        for (;;) writeFileSync(filler, Buffer.alloc(bytes), { flag: "a" });
      } catch {}
    const finding = await findingOf(server, "disk_full", "echo");
    expect(said(finding)).toMatch(/cannot be written: jobs wait, and submissions are refused/);
    rmSync(filler);
    await findingOf(server, "all_well", "echo");
  });
});

describe.runIf(isOnSqlite)("the explanation on a copy of a data directory", () => {
  const original = new TestServer();
  const copy = new TestServer();
  const over = join(original.dir, "over");
  beforeAll(async () => {
    await original.start();
    await original.deployBeside(project(OBEDIENT));
  });
  afterAll(async () => {
    writeFileSync(over, "");
    await copy.stop();
    await original.stop();
  });

  it("says that its jobs are paused, and how they continue", async () => {
    const items = [{ do: "await", path: over }];
    const job = await original.submit("jobs", { workers: 1, item_list: { items, batch_size: 1 } });
    await findingOf(original, "all_well", "jobs", job);
    execFileSync("cp", ["-a", original.dataDir, copy.dataDir]);
    await copy.start();
    const finding = await findingOf(copy, "job_paused_in_copy", "jobs", job);
    expect(finding).toMatchObject({ severity: "warning", command: "quern job unpause --all" });
  });
});
