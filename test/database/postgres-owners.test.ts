/** Who may take a PostgreSQL database: a start that is refused changes nothing, and a former owner stops. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { connectPostgres, openOwnPostgres } from "../../src/database/postgres/open-postgres.ts";
import type { PostgresDatabase } from "../../src/database/postgres/postgres-database.ts";
import { eventually } from "../harness/eventually.ts";
import { isPostgresInstalled, Postgres, psql } from "../harness/postgres.ts";

describe.runIf(isPostgresInstalled)("a PostgreSQL database whose owner has lost its connection", () => {
  let postgres: Postgres;
  let directory: string;
  let url: string;
  let owner: PostgresDatabase;
  let databases = 0;
  const taken: string[] = [];

  beforeAll(async () => {
    postgres = await Postgres.start();
    psql(postgres.url, "CREATE ROLE plain LOGIN");
    directory = mkdtempSync(join(tmpdir(), "quern-owners-"));
  });
  afterAll(() => {
    postgres.stop();
    rmSync(directory, { recursive: true });
  });
  beforeEach(async () => {
    const name = `owned${++databases}`;
    psql(postgres.url, `CREATE DATABASE ${name} OWNER plain`);
    url = postgres.urlOf(name);
    const onTaken = (error: Error) => taken.push(error.message);
    owner = await openOwnPostgres(directory, { url: url.replace("quern@", "plain@"), onTaken });
    await owner.run("UPDATE owner SET instance_id = 'another directory'");
    psql(postgres.url, "ALTER ROLE plain NOLOGIN");
    psql(postgres.url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'plain'");
    await eventually("it is noticed", () => owner.fault !== undefined);
  });

  const letIn = () => psql(postgres.url, "ALTER ROLE plain LOGIN");

  it("stays its own if a server of another directory is refused meanwhile", async () => {
    await expect(openOwnPostgres(directory, { url })).rejects.toMatchObject({
      why: "database_missing",
      message: expect.stringContaining("Nothing was changed"),
    });
    letIn();
    expect(await owner.run("UPDATE owner SET epoch = 7")).toBe(1);
    await owner.close();
    expect(taken).toEqual([]);
  });

  it("is lost to another owner: the former one says so once, and does nothing any more", async () => {
    const rival = await connectPostgres({ url });
    letIn();
    await rival.close();
    await eventually("it is told", () => taken.length > 0);
    // Its server shuts down, and nothing fails before that.
    const leaving = owner.patient(AbortSignal.abort());
    await expect(leaving.run("UPDATE owner SET epoch = 8")).rejects.toMatchObject({
      name: "DatabaseUnavailable",
      message: expect.stringContaining("another Quern has taken the database meanwhile"),
    });
    await owner.close();
    expect(psql(url, "SELECT epoch FROM owner")).toBe("0");
    expect(taken).toEqual(["another Quern has taken the database meanwhile"]);
  });
});
