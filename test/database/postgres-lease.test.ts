/** The lease of a PostgreSQL database: who renews it, who waits for it, and what a former owner may still do. */
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { Lease } from "../../src/database/postgres/lease.ts";
import { connectPostgres } from "../../src/database/postgres/open-postgres.ts";
import type { PostgresDatabase } from "../../src/database/postgres/postgres-database.ts";
import { eventually } from "../harness/eventually.ts";
import { isPostgresInstalled, Postgres, psql } from "../harness/postgres.ts";

const owner = (name: string) => ({ directory: name, host: `host of ${name}`, place: `place of ${name}` });
const never = new AbortController().signal;

describe.runIf(isPostgresInstalled)("a PostgreSQL database with a lease", () => {
  let postgres: Postgres;
  let url: string;
  let databases = 0;
  let taken: string[];
  let waiting: (string | undefined)[];
  beforeAll(async () => {
    postgres = await Postgres.start();
  });
  afterAll(() => postgres.stop());
  beforeEach(() => {
    const name = `leased${++databases}`;
    psql(postgres.url, `CREATE DATABASE ${name}`);
    url = postgres.urlOf(name);
    taken = [];
    waiting = [];
  });

  const open = (name: string): Promise<PostgresDatabase> =>
    connectPostgres({
      ...{ url, owner: owner(name) },
      onTaken: () => taken.push(name),
      standby: { onStandby: (lease?: Lease) => waiting.push(lease?.host), onTakeover: () => {} },
    });
  const change = (db: PostgresDatabase) => db.run("CREATE TABLE IF NOT EXISTS changed (id INT)");

  it("is renewed, and goes to a server that waits as soon as it is given up", async () => {
    const first = await open("one");
    const renewed = () => psql(url, "SELECT renewed FROM quern_lease");
    const before = renewed();
    await eventually("it is renewed", () => renewed() !== before);
    const second = open("two");
    await eventually("it waits", () => waiting.length > 0);
    await pause(1_000);
    expect(psql(url, "SELECT host FROM quern_lease")).toBe("host of one");
    await first.close();
    await change(await second);
    expect(psql(url, "SELECT host FROM quern_lease")).toBe("host of two");
    await (await second).close();
    expect([taken, waiting]).toEqual([[], ["host of one"]]);
  });

  it("goes at once to another process of the same data directory, although the former one's session is left", async () => {
    const first = await open("one");
    const second = await open("one");
    await change(second);
    await eventually("the former one is told", () => taken.length > 0);
    await expect(first.confirmOwner(never)).rejects.toThrow("another server has taken it");
    await first.close();
    await second.close();
    expect(waiting).toEqual([]);
  });

  it("is taken from an owner that is silent: it stops, also if its sessions are there again", async () => {
    const first = await open("one");
    await change(first);
    await first.confirmOwner(never);
    // As after the loss of its machine: nobody renews the lease.
    psql(url, "UPDATE quern_lease SET writer = 'silent'; UPDATE quern_writer SET writer = 'silent'");
    await eventually("it is told", () => taken.length > 0);
    await expect(first.confirmOwner(never)).rejects.toThrow("another server has taken it");
    const late = first.patient(AbortSignal.abort());
    await expect(late.run("INSERT INTO changed VALUES (1)")).rejects.toMatchObject({
      name: "DatabaseUnavailable",
    });
    const second = await open("two");
    expect(psql(url, "SELECT count(*) FROM changed")).toBe("0");
    await first.close();
    await second.close();
  });

  it("is not confirmed while the database is away, and is once it is back", async () => {
    const db = await open("one");
    postgres.pause();
    try {
      await pause(7_000);
      const leaving = new AbortController();
      const refused = expect(db.confirmOwner(leaving.signal)).rejects.toThrow("the lease was not renewed");
      leaving.abort();
      await refused;
      const confirmed = db.confirmOwner(never);
      postgres.resume();
      await confirmed;
    } finally {
      postgres.resume();
    }
    await db.close();
  });

  it("is not confirmed by a machine that was suspended, whose monotonic clock stood still", async () => {
    const db = await open("one");
    await db.confirmOwner(never);
    postgres.pause();
    try {
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 60_000 });
      const confirmed = db.confirmOwner(never).then(() => "confirmed");
      expect(await Promise.race([confirmed, pause(500, "waits")])).toBe("waits");
      postgres.resume();
      expect(await confirmed).toBe("confirmed");
    } finally {
      vi.useRealTimers();
      postgres.resume();
    }
    await db.close();
  });
});
