/** What an error of PostgreSQL means, and how a database lives through real ones. */
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import {
  faultOf,
  findCause,
  inWords,
  isSetUpWrong,
  pauseMs,
  RolledBack,
} from "../../src/database/postgres/faults.ts";
import { connectPostgres, openOwnPostgres } from "../../src/database/postgres/open-postgres.ts";
import type { PostgresDatabase } from "../../src/database/postgres/postgres-database.ts";
import { Session } from "../../src/database/postgres/session.ts";
import { eventually } from "../harness/eventually.ts";
import { isPostgresInstalled, Postgres, psql } from "../harness/postgres.ts";

const LIMITS = { serverMs: 1_500, clientMs: 2_000 };

describe("an error of PostgreSQL", () => {
  it.each([
    [{ code: "40001" }, "again"],
    [{ code: "40P01" }, "again"],
    [{ code: "57014" }, "again"],
    [{ code: "57P01", severity: "FATAL" }, "lost"],
    [{ code: "57P03" }, "lost"],
    [{ code: "53300" }, "lost"],
    [{ code: "25006" }, "lost"],
    [{ code: "08006" }, "lost"],
    [{ code: "XX000", severity: "PANIC" }, "lost"],
    [{ code: "ECONNREFUSED" }, "lost"],
    [{ message: "Connection terminated unexpectedly" }, "lost"],
    [{ code: "53100", severity: "ERROR" }, undefined],
    [{ code: "23505", severity: "ERROR" }, undefined],
    [new TypeError("a bug"), undefined],
  ])("%j means %s", (error, fault) => {
    expect(faultOf(error)).toBe(fault);
  });

  it("is one of the set-up if only a person can cure it", () => {
    expect([{ code: "28P01" }, { code: "3D000" }, { code: "42501" }].every(isSetUpWrong)).toBe(true);
    expect([{ code: "53300" }, { code: "ECONNREFUSED" }].some(isSetUpWrong)).toBe(false);
  });

  it("is found behind other errors, and has words", () => {
    const inner = new RolledBack({ message: "deadlock detected" });
    expect(findCause(new Error("outer", { cause: inner }), RolledBack)).toBe(inner);
    expect(inWords(Object.assign(new AggregateError([], ""), { code: "ECONNREFUSED" }))).toBe("ECONNREFUSED");
  });

  it("is tried again after pauses that grow, are bounded and differ", () => {
    const limits = { firstMs: 10, maxMs: 100 };
    expect([0, 1, 2, 9, 1e9].map((tries) => pauseMs(tries, limits, 1))).toEqual([10, 20, 40, 100, 100]);
    expect(pauseMs(3, limits, 0)).toBe(40);
  });
});

describe.runIf(isPostgresInstalled)("a PostgreSQL that fails", () => {
  let postgres: Postgres;
  let db: PostgresDatabase;
  const told: string[] = [];
  const open = async () => {
    db = await connectPostgres({
      url: postgres.url,
      limits: LIMITS,
      onReach: ({ isReached, why }) => told.push(isReached ? "reached" : why),
    });
  };
  const patient = () => db.patient(new AbortController().signal);
  const add = (to: Database) => to.run("UPDATE counts SET n = n + 1");
  const count = () => Number(psql(postgres.url, "SELECT n FROM counts"));

  beforeAll(async () => {
    postgres = await Postgres.start();
    psql(postgres.url, "CREATE TABLE counts (n BIGINT); INSERT INTO counts VALUES (0)");
    await open();
  });
  afterAll(async () => {
    await db.close();
    postgres.stop();
  });
  afterEach(() => {
    told.length = 0;
  });

  it.each(["killed", "shut down"])("and is %s is waited for; every change counts once", async (how) => {
    const before = count();
    let isOver = false;
    const adding = (async () => {
      let added = 0;
      for (; !isOver || added === 0; added++) await add(patient());
      return added;
    })();
    for (let round = 0; round < 3; round++) {
      await pause(100);
      if (how === "killed") postgres.kill();
      else postgres.end("fast");
      await eventually("it is noticed", () => db.fault !== undefined);
      postgres.begin();
      await eventually("it is reached again", () => db.fault === undefined);
    }
    isOver = true;
    const added = await adding;
    expect(count() - before).toBe(added);
    expect(added).toBeGreaterThan(3);
  });

  it("and stands still is noticed, said, and waited for", async () => {
    const before = count();
    postgres.pause();
    const adding = add(patient());
    await eventually("it is noticed", () => db.fault !== undefined);
    await eventually("it is told", () => told.length > 0);
    postgres.resume();
    expect(await adding).toBe(1);
    expect([count(), told.at(-1), db.fault]).toEqual([before + 1, "reached", undefined]);
  });

  it("refuses a request after a while, and has not done it then", async () => {
    const before = count();
    postgres.kill();
    await eventually("it is noticed", () => db.fault !== undefined);
    const beginMs = performance.now();
    await expect(add(db)).rejects.toMatchObject({ name: "DatabaseUnavailable", isOutcomeUnknown: false });
    expect(performance.now() - beginMs).toBeLessThan(15_000);
    postgres.begin();
    await eventually("it is reached again", () => db.fault === undefined);
    expect(count()).toBe(before);
  });

  it("is given up soon by work that shuts down, and serves such work if it can", async () => {
    const before = count();
    const leaving = db.patient(AbortSignal.abort());
    expect(await add(leaving)).toBe(1);
    const abort = new AbortController();
    postgres.kill();
    await eventually("it is noticed", () => db.fault !== undefined);
    const waiting = add(db.patient(abort.signal)).catch((error: unknown) => error);
    abort.abort();
    await expect(add(leaving)).rejects.toMatchObject({ name: "DatabaseUnavailable" });
    expect(await waiting).toMatchObject({ name: "DatabaseUnavailable", isOutcomeUnknown: false });
    postgres.begin();
    await eventually("it is reached again", () => db.fault === undefined);
    expect(count()).toBe(before + 1);
  });

  it("ends our session at a shut-down of one session, and goes on with another", async () => {
    const before = count();
    for (let round = 0; round < 5; round++) {
      const adding = Promise.all([add(db), add(db)]);
      psql(
        postgres.url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'quern'",
      );
      await adding;
    }
    expect(count()).toBe(before + 10);
  });

  it("rolls back for a deadlock, and the transaction runs again", async () => {
    psql(postgres.url, "CREATE TABLE other (n BIGINT); INSERT INTO other VALUES (0)");
    const rival = await Session.open(postgres.url, { serverMs: 20_000, clientMs: 20_000 });
    await rival.exec("SET deadlock_timeout = '60s'");
    await rival.exec("BEGIN");
    await rival.run("UPDATE other SET n = 1");
    const before = count();
    let runs = 0;
    let crossed: Promise<unknown> = Promise.resolve();
    await db.transaction(async (tx) => {
      runs++;
      await add(tx as Database);
      if (runs === 1) {
        crossed = rival.run("UPDATE counts SET n = n").then(() => rival.exec("COMMIT"));
        await pause(50);
      }
      await tx.run("UPDATE other SET n = n + 1");
    });
    await crossed;
    await rival.leave();
    expect([runs, count(), psql(postgres.url, "SELECT n FROM other")]).toEqual([2, before + 1, "2"]);
  });

  it("cancels a statement that waits too long for a lock; it runs again until it succeeds", async () => {
    const before = count();
    const rival = await Session.open(postgres.url, { serverMs: 20_000, clientMs: 20_000 });
    await rival.exec("BEGIN");
    await rival.run("UPDATE counts SET n = n");
    const adding = add(db);
    await pause(2 * LIMITS.clientMs);
    await rival.exec("COMMIT");
    await rival.leave();
    expect(await adding).toBe(1);
    expect(count()).toBe(before + 1);
  });

  it("has too many connections for a new session: it is waited for", async () => {
    const before = count();
    const limit = (most: number) => psql(postgres.url, `ALTER DATABASE postgres CONNECTION LIMIT ${most}`);
    psql(
      postgres.url,
      "CREATE ROLE plain LOGIN; GRANT ALL ON SCHEMA public TO plain; GRANT ALL ON ALL TABLES IN SCHEMA public TO plain; GRANT pg_read_all_stats TO plain",
    );
    await db.close();
    db = await connectPostgres({ url: postgres.url.replace("quern@", "plain@"), limits: LIMITS });
    limit(0);
    psql(postgres.url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'plain'");
    await eventually("it is noticed", () => /too many connections/.test(db.fault ?? ""));
    const adding = add(patient());
    limit(-1);
    expect(await adding).toBe(1);
    expect(count()).toBe(before + 1);
    await db.close();
    await open();
  });

  it("is read-only for a while, as a standby before it is promoted", async () => {
    const before = count();
    const readOnly = (is: "on" | "off") =>
      psql(
        postgres.urlOf("template1"),
        `ALTER DATABASE postgres SET default_transaction_read_only = ${is}; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'quern'`,
      );
    readOnly("on");
    await eventually("it is noticed", () => /read-only/.test(db.fault ?? ""));
    const adding = add(patient());
    readOnly("off");
    expect(await adding).toBe(1);
    expect(count()).toBe(before + 1);
  });

  it("is refused at the start with the cure, and without the password", async () => {
    const refused = async (database: string) => {
      const url = postgres.urlOf(database).replace("quern@", "quern:secret@");
      const error = (await connectPostgres({ url }).catch((thrown: unknown) => thrown)) as Error;
      expect(JSON.stringify([error.message, error.stack, String(error.cause)])).not.toContain("secret");
      return error;
    };
    expect(await refused("nowhere")).toMatchObject({
      why: "database_unusable",
      message: expect.stringMatching(/"nowhere" does not exist.*create the database/),
    });
    psql(postgres.url, "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    expect(await refused("latin")).toMatchObject({ message: expect.stringContaining("ENCODING 'UTF8'") });
  });

  it("belongs to one data directory, and to one controller at a time", async () => {
    psql(postgres.url, "CREATE DATABASE owned");
    const url = postgres.urlOf("owned");
    const owner = await openOwnPostgres("/nowhere", { url });
    await owner.run("UPDATE owner SET instance_id = 'another'");
    const rival = connectPostgres({ url });
    await owner.close();
    await (await rival).close();
    await expect(openOwnPostgres("/nowhere", { url })).rejects.toMatchObject({
      why: "database_missing",
      message: expect.stringContaining("belongs to another data directory"),
    });
  });
});
