/** Commits of PostgreSQL whose answer does not come: each has happened exactly once in the end. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { connectPostgres } from "../../src/database/postgres/open-postgres.ts";
import { Ownership } from "../../src/database/postgres/ownership.ts";
import { Session } from "../../src/database/postgres/session.ts";
import { type CommitFault, CommitProxy } from "../harness/commit-proxy.ts";
import { eventually } from "../harness/eventually.ts";
import { isPostgresInstalled, Postgres, psql } from "../harness/postgres.ts";

const LOCKS = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";

describe.runIf(isPostgresInstalled)("a commit without an answer", () => {
  let postgres: Postgres;
  let proxy: CommitProxy;
  let db: Database;
  beforeAll(async () => {
    postgres = await Postgres.start();
  });
  afterAll(() => postgres.stop());
  beforeEach(async () => {
    proxy = await CommitProxy.open(postgres.port);
    psql(
      postgres.url,
      "DROP TABLE IF EXISTS counts; CREATE TABLE counts (n BIGINT); INSERT INTO counts VALUES (0)",
    );
    db = await connectPostgres({ url: postgres.urlOf("postgres", proxy.port) });
  });
  afterEach(async () => {
    await db.close();
    await proxy.close();
  });

  const count = () => Number(psql(postgres.url, "SELECT n FROM counts"));
  /** How often `work` ran, and its result. */
  const addOne = async () => {
    let runs = 0;
    const result = await db.transaction(async (tx) => {
      runs++;
      await tx.run("UPDATE counts SET n = n + 1");
      return "done";
    });
    return { runs, result };
  };

  it.each([
    ["drop", 2],
    ["unanswered", 1],
  ] as [CommitFault, number][])("that was cut by %s counts once, after %i runs", async (fault, runs) => {
    proxy.next = fault;
    expect(await addOne()).toEqual({ runs, result: "done" });
    expect(count()).toBe(1);
    expect(proxy.connections).toBe(2);
  });

  it.each(["drop", "unanswered"] as CommitFault[])(
    "of a single statement that was cut by %s changes one row once",
    async (fault) => {
      proxy.next = fault;
      expect(await db.run("UPDATE counts SET n = n + 1")).toBe(1);
      expect(count()).toBe(1);
    },
  );

  it("that reaches the server after the next connection does nothing", async () => {
    proxy.next = "late";
    const adding = addOne();
    expect(await adding).toEqual({ runs: 2, result: "done" });
    proxy.release();
    await db.run("UPDATE counts SET n = n + 10");
    await eventually("no session is left in a transaction", () => {
      const left = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'";
      return psql(postgres.url, left) === "0";
    });
    expect(count()).toBe(11);
  });

  it("of an earlier generation fails, whatever its session has done before", async () => {
    const limits = { serverMs: 5_000, clientMs: 5_000 };
    const [former, other] = [await Session.open(postgres.url, limits), new Ownership()];
    await db.close();
    // The server frees the lock of a session when it has seen its end.
    await eventually("the lock is free", () => psql(postgres.url, LOCKS) === "0");
    const tenure = await other.take(former);
    await former.exec("BEGIN");
    await former.run("UPDATE counts SET n = n + 1");
    psql(postgres.url, "UPDATE quern_writer SET generation = generation + 1");
    await expect(other.commit(former, tenure, "mark")).rejects.toThrow("another session has taken over");
    await former.leave();
    expect(count()).toBe(0);
  });

  it("is repeated only while it is not known; work in between sees the result", async () => {
    for (let round = 0; round < 20; round++) {
      proxy.next = (["drop", "unanswered", "late"] as const)[round % 3];
      await Promise.all([addOne(), addOne(), addOne()]);
      proxy.release();
      expect(count()).toBe(3 * (round + 1));
    }
  });
});
