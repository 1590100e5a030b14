/** How sessions of PostgreSQL are set, and how often work that breaks them is tried. */
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectPostgres } from "../../src/database/postgres/open-postgres.ts";
import { isPostgresInstalled, Postgres, psql } from "../harness/postgres.ts";

describe.runIf(isPostgresInstalled)("a session of PostgreSQL", () => {
  let postgres: Postgres;
  beforeAll(async () => {
    postgres = await Postgres.start();
  });
  afterAll(() => postgres.stop());

  it.each([
    ["off", "on"],
    ["remote_apply", "remote_apply"],
  ])("has synchronous_commit=%s in its database, and commits with %s", async (given, used) => {
    psql(postgres.url, `ALTER DATABASE postgres SET synchronous_commit = ${given}`);
    const db = await connectPostgres({ url: postgres.url });
    expect(await db.all("SHOW synchronous_commit")).toEqual([{ synchronous_commit: used }]);
    await db.close();
    psql(postgres.url, "ALTER DATABASE postgres RESET synchronous_commit");
  });

  it("that each try of some work breaks is not made again without a pause; other work goes on", async () => {
    const db = await connectPostgres({ url: postgres.url });
    const abort = new AbortController();
    let tries = 0;
    const breaking = db.patient(abort.signal).transaction(async (tx) => {
      tries++;
      await tx.all("SELECT pg_terminate_backend(pg_backend_pid())");
    });
    const refused = expect(breaking).rejects.toMatchObject({ name: "DatabaseUnavailable" });
    await pause(3_000);
    // Pauses double, and half of each is chance: after eight tries they are a second.
    expect(tries).toBeGreaterThan(2);
    expect(tries).toBeLessThan(16);
    expect(await db.all("SELECT 1 AS one")).toEqual([{ one: 1 }]);
    abort.abort();
    await refused;
    await db.close();
  });

  it("whose default is serializable repeats what was rolled back", async () => {
    psql(postgres.url, "CREATE TABLE counts (n BIGINT); INSERT INTO counts VALUES (0)");
    psql(postgres.url, "ALTER DATABASE postgres SET default_transaction_isolation = serializable");
    const db = await connectPostgres({ url: postgres.url });
    let tries = 0;
    await db.transaction(async (tx) => {
      tries++;
      await tx.all("SELECT n FROM counts");
      if (tries === 1) psql(postgres.url, "UPDATE counts SET n = n + 10");
      await tx.run("UPDATE counts SET n = n + 1");
    });
    expect([tries, psql(postgres.url, "SELECT n FROM counts")]).toEqual([2, "11"]);
    await db.close();
  });
});
